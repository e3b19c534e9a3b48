use super::*;

#[test]
fn class_directories_are_read_only_unless_a_method_works_in_them() {
    let of = |module: &str, works_in: Option<&str>, class_path: &[&str]| {
        let settings = JvmSettings { working_directory: works_in.map(str::to_owned), ..JvmSettings::default() };
        let class_path: Vec<String> = class_path.iter().map(|element| (*element).to_owned()).collect();
        let launch = Launch {
            java_home: "/opt/java",
            console: PLATFORM_1,
            module,
            class_path: &class_path,
            class: "ATest",
            method: "m",
            settings: &settings,
            class_archive: false,
        };
        let protected = launch.directories().into_iter().filter_map(|step| match step {
            Step::Protect { path } => Some(path),
            _ => None,
        });
        protected.collect::<Vec<_>>()
    };
    let (tests, classes) = ("/work/project/m/target/test-classes", "/work/project/m/target/classes");
    let jar = "/opt/maven-repository/a.jar";
    assert_eq!(of("/work/project/m", None, &[tests, classes, jar]), [tests, classes]);
    assert_eq!(of("/work/project/m", Some(tests), &[tests, classes]), [classes]);
    let roundabout = ["/work/project/m/../m/./target/classes", "/work/project/m/..", "/work/project/m/../../etc"];
    assert_eq!(of("/work/project/m", None, &roundabout), [classes]);
    assert_eq!(of("/work/project/m", None, &["/work/project/m/../lib/own.jar"]), ["/work/project/lib/own.jar"]);
}

#[test]
fn the_console_is_the_manifests_or_fits_the_class_path() {
    let of = |name: &str, jdk, launcher| console_for(&[format!("/m2/{name}")], jdk, launcher);
    let (five, six) = ("junit-jupiter-api-5.9.1.jar", "junit-jupiter-api-6.0.0.jar");
    assert_eq!(of(five, 17, Launcher::Auto), PLATFORM_1);
    assert_eq!(of(six, 17, Launcher::Auto), PLATFORM_6);
    assert_eq!(of(six, 11, Launcher::Auto), PLATFORM_1);
    assert_eq!(of(six, 17, Launcher::Platform1), PLATFORM_1);
    assert_eq!(of(five, 17, Launcher::Platform6), PLATFORM_6);
}
