//! With which arguments the JVM of a JDK starts. Projects have options for several JDKs.

/// The option that names modules which the JVM must find to start.
const ADDS_MODULES: &str = "--add-modules";

/// The option that hides all other modules of the development kit. Tests on the class path may need them.
const LIMITS_MODULES: &str = "--limit-modules";

/// The first JDK with modules.
const MODULAR: u32 = 9;

/// The end of what JDKs still have.
const OPEN: u32 = u32::MAX;

/// Beginnings of arguments for JVMs from the first of these JDKs on and before the second. With most of them other JVMs do not
/// start. A collector that a JVM lacks is ignored, as all options that it does not know; it would then have no chosen one.
const ARGUMENTS: [(&str, u32, u32); 16] = [
    ("--", MODULAR, OPEN),
    ("--enable-native-access", 16, OPEN),
    ("-Djava.endorsed.dirs", 0, MODULAR),
    ("-Djava.ext.dirs", 0, MODULAR),
    ("-Djava.security.manager=allow", 12, OPEN),
    ("-Djava.security.manager=disallow", 12, OPEN),
    ("-XX:+UseConcMarkSweepGC", 0, 14),
    ("-XX:+UseEpsilonGC", OPEN, OPEN),
    ("-XX:+UseParNewGC", 0, 10),
    ("-XX:+UseParallelOldGC", 0, 15),
    ("-XX:+UseShenandoahGC", 15, OPEN),
    ("-XX:+UseZGC", 15, OPEN),
    ("-Xbootclasspath/p:", 0, MODULAR),
    ("-Xbootclasspath:", 0, MODULAR),
    ("-Xlog:", MODULAR, OPEN),
    ("-d64", 0, MODULAR),
];

/// Arguments that end every JVM before the test, or name a collector beside the one that a launch has.
const NEVER: [&str; 15] = [
    "-?",
    "-XX:+DumpSharedSpaces",
    "-Xconcgc",
    "-Xincgc",
    "-Xshare:dump",
    "-X",
    "-d32",
    "-h",
    "-help",
    "-version",
    "--dry-run",
    "--help",
    "--list-modules",
    "--validate-modules",
    "--version",
];

/// Beginnings of modules that the images' development kits have, and of words that stand for several.
const FINDABLE: [&str; 3] = ["java.", "jdk.", "ALL-"];

/// Modules that development kits have from the first of these JDKs on and no more in the second. Other modules of the
/// beginnings above are in all kits with modules.
const SOMETIMES: [(&str, u32, u32); 20] = [
    ("java.activation", MODULAR, 11),
    ("java.corba", MODULAR, 11),
    ("java.net.http", 11, OPEN),
    ("java.se.ee", MODULAR, 11),
    ("java.transaction", MODULAR, 11),
    ("java.xml.bind", MODULAR, 11),
    ("java.xml.ws", MODULAR, 11),
    ("java.xml.ws.annotation", MODULAR, 11),
    ("jdk.aot", MODULAR, 17),
    ("jdk.incubator.foreign", 14, 19),
    ("jdk.incubator.vector", 16, OPEN),
    ("jdk.jpackage", 16, OPEN),
    ("jdk.nio.mapmode", 14, OPEN),
    ("jdk.pack", MODULAR, 14),
    ("jdk.random", 17, OPEN),
    ("jdk.rmic", MODULAR, 15),
    ("jdk.scripting.nashorn", MODULAR, 15),
    ("jdk.scripting.nashorn.shell", MODULAR, 15),
    ("jdk.xml.bind", MODULAR, 11),
    ("jdk.xml.ws", MODULAR, 11),
];

/// Beginnings of modules of which only those above are ever in a kit.
const SELDOM: [&str; 3] = ["java.jnlp", "jdk.incubator.", "jdk.snmp"];

/// Tells whether a launch on this JDK reaches its test with an argument.
pub(super) fn starts(argument: &str, jdk: u32) -> bool {
    let accepts = |(begin, from, end): &(&str, u32, u32)| !argument.starts_with(begin) || (*from..*end).contains(&jdk);
    // With `=` the main class is part of the word.
    ARGUMENTS.iter().all(accepts) && !NEVER.contains(&argument) && !argument.starts_with("--module=")
}

/// Returns the value of an option without modules of the project, and without those that this development kit lacks. Tests run
/// on the class path, where the JVM finds no such module and would not start. `None` if the option is left out.
pub(super) fn findable(option: &str, value: &str, jdk: u32) -> Option<String> {
    if option == LIMITS_MODULES {
        return None;
    }
    if option != ADDS_MODULES {
        return Some(value.to_owned());
    }
    let is_there = |module: &str| match SOMETIMES.iter().find(|(name, _, _)| module == *name) {
        Some((_, from, end)) => (*from..*end).contains(&jdk),
        None => !SELDOM.iter().any(|begin| module.starts_with(begin)),
    };
    let is_findable = |module: &&str| FINDABLE.iter().any(|begin| module.starts_with(begin)) && is_there(module);
    let modules: Vec<&str> = value.split(',').filter(is_findable).collect();
    (!modules.is_empty()).then(|| modules.join(","))
}
