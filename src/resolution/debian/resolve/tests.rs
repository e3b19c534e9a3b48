use super::*;

/// Lines of `name version; field: value; …`.
fn index(suite: &str, packages: &[&str]) -> PackageIndex {
    let mut text = String::new();
    for line in packages {
        let mut parts = line.split("; ");
        let (name, version) = parts.next().unwrap().split_once(' ').unwrap();
        let digest = crate::digest::Digest::of(line.as_bytes()).hex();
        text += &format!("Package: {name}\nVersion: {version}\nArchitecture: all\nSize: 1\nSHA256: {digest}\n");
        text += &format!("Filename: pool/{name}.deb\n");
        for field in parts {
            text += &format!("{field}\n");
        }
        text += "\n";
    }
    PackageIndex::parse(text, suite).unwrap()
}

fn run(suites: &[&PackageIndex], roots: &[&str], installed: &[(&str, &str)]) -> Result<String, ResolveError> {
    let installed = installed
        .iter()
        .map(|(name, version)| {
            let installed = Installed { version: version.parse().unwrap(), provides: Vec::new() };
            ((*name).to_owned(), installed)
        })
        .collect();
    let dropped = BTreeSet::from(["dropped".to_owned()]);
    let roots = roots
        .iter()
        .map(|root| {
            let (name, suite) = root.split_once('/').map_or((*root, None), |(name, suite)| (name, Some(suite)));
            Root { name, suite }
        })
        .collect();
    let found = resolve(suites, &Request { roots, installed: &installed, dropped: &dropped })?;
    Ok(found.iter().map(|p| format!("{}={}", p.name, p.version_text)).collect::<Vec<_>>().join(" "))
}

#[test]
fn closures_follow_alternatives_versions_and_provided_names() {
    let stable = index(
        "stable",
        &[
            "app 1; Depends: lib (>= 2), gone | tool, mail; Pre-Depends: early",
            "early 1",
            "lib 2; Depends: dropped, app",
            "lib 1",
            "tool 1; Depends: missing",
            "tool-ng 1; Provides: tool (= 3)",
            "exim 1; Provides: mail; Priority: standard",
            "anymail 1; Provides: mail",
            "new 1; Depends: lib (>= 3)",
            "strict 1; Depends: tool (>= 4)",
            "either 1; Depends: exim | anymail",
            "both 1; Depends: either, anymail; Conflicts: exim",
        ],
    );
    let unstable = index("unstable", &["lib 3", "java 17; Depends: java-lib (= 17), early", "java-lib 17", "early 2"]);
    let suites = [&stable, &unstable];
    // `tool` can't be installed, so what provides it is; `exim` comes first by its priority.
    assert_eq!(run(&suites, &["app"], &[]).unwrap(), "app=1 early=1 exim=1 lib=2 tool-ng=1");
    assert_eq!(run(&suites, &["java/unstable"], &[]).unwrap(), "early=1 java=17 java-lib=17");
    assert_eq!(run(&suites, &["new"], &[]).unwrap(), "lib=3 new=1");
    assert_eq!(run(&suites, &["java", "early"], &[("early", "1")]).unwrap(), "java=17 java-lib=17");
    assert!(matches!(run(&suites, &["strict"], &[]), Err(ResolveError::Unsatisfiable { .. })));
    assert!(matches!(run(&suites, &["nothing"], &[]), Err(ResolveError::Unsatisfiable { .. })));
    assert!(matches!(run(&suites, &["app/unstable"], &[]), Err(ResolveError::Unsatisfiable { .. })));
    assert!(matches!(run(&suites, &["both"], &[]), Err(ResolveError::Conflict { .. })));
    assert!(matches!(run(&suites, &["exim", "both"], &[]), Err(ResolveError::Conflict { .. })));
    let error = run(&suites, &["lib/unstable"], &[("lib", "2")]).unwrap_err();
    assert!(matches!(error, ResolveError::OtherVersion { .. }));
    assert_eq!(run(&suites, &["app"], &[("mail", "1"), ("tool", "9")]).unwrap(), "app=1 early=1 lib=2");
}
