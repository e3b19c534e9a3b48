use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn address(machine: &Machine, name: &str) -> Option<String> {
    machine.clients_address(&name.parse().unwrap()).map(|address| address.url().to_string())
}

#[test]
fn names_and_addresses_are_checked() {
    for good in ["central", "jboss-public.repo_1", "9"] {
        assert!(good.parse::<OriginName>().is_ok(), "{good}");
    }
    for bad in ["", "-x", ".x", "a b", "a/b", "a\n", &"x".repeat(101)] {
        assert!(bad.parse::<OriginName>().is_err(), "{bad}");
    }
    for bad in ["", "host", "ftp://x/", "http://", "file://host/x", "http://x/?q", "ext::sh", "mirror+http://x/"] {
        assert!(bad.parse::<OriginAddress>().is_err(), "{bad}");
    }
    let address: OriginAddress = "http://user:secret@host/base".parse().unwrap();
    assert!(!format!("{address:?}").contains("secret"));
    assert_eq!(address.join("a b/c+d~1.deb").unwrap().as_str(), "http://user:secret@host/base/a%20b/c+d~1.deb");
    assert_eq!(address.join("a/").unwrap().path(), "/base/a/");
    for bad in ["", "/a", "../a", "a//b", "a/../b", "a\\b", "a\nb", "."] {
        assert!(address.join(bad).is_none(), "{bad:?}");
    }
    assert_eq!(address.join("a?b#c%2e").unwrap().path(), "/base/a%3Fb%23c%252e");
}

#[test]
fn the_debian_archive_is_found_among_apts_sources() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let machine = Machine::at(root, None, &[]);
    assert_eq!(address(&machine, "debian"), None);
    write(
        root,
        "etc/apt/sources.list.d/debian.sources",
        "Types: deb\n# http://dead.test/debian\nURIs: http://third.test/nodesource\nSuites: nodistro\nComponents: main\n\n\
         Types: deb\nURIs: http://other.test/debian-security\nSuites: trixie-security\nComponents: main\n\n\
         Types: deb-src\nURIs: http://source.test/debian\nSuites: trixie\nComponents: main\n\n\
         Types: deb\nEnabled: no\nURIs: http://off.test/debian\nSuites: trixie\nComponents: main\n\n\
         Types: deb\nURIs: mirror+file:/etc/mirrors/debian\n  http://right.test/debian\nSuites: trixie trixie-updates\n\
         Components: main contrib\n",
    );
    assert_eq!(address(&machine, "debian").unwrap(), "http://right.test/debian/");
    write(
        root,
        "etc/apt/sources.list",
        "# deb http://comment.test/debian trixie main\ndeb-src http://source.test/debian trixie main\n\
         deb http://sec.test/debian trixie-security main\n\
         deb [arch=amd64 check-valid-until=no] https://line.test/debian/ trixie main # note\n",
    );
    assert_eq!(address(&machine, "debian").unwrap(), "https://line.test/debian/");
    assert!(!machine.apt().check_valid_until);
}

#[test]
fn apts_options_are_read_in_both_notations() {
    for (text, expected) in [
        ("Acquire::Check-Valid-Until \"false\";", false),
        ("// Acquire::Check-Valid-Until \"false\";\n# Acquire::Check-Valid-Until \"false\";", true),
        (
            "/* Acquire::Check-Valid-Until \"false\"; */ Acquire { Http { Proxy \"x\"; }; check-valid-until no; };",
            false,
        ),
        ("Acquire::Other \"a // b\"; Acquire::Check-Valid-Until true;", true),
        ("Acquire { Check-Valid-Until \"0", true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "etc/apt/apt.conf.d/99test", text);
        assert_eq!(Machine::at(directory.path(), None, &[]).apt().check_valid_until, expected, "{text}");
    }
}

const SETTINGS: &str = r"<settings><servers><server><id>m</id><username>u</username><password>${env.PW}</password></server>
  </servers><mirrors>
  <!-- <mirror><id>c</id><mirrorOf>*</mirrorOf><url>http://comment.test/</url></mirror> -->
  <mirror><id>b</id><mirrorOf>*</mirrorOf><url>http://blocked.test/</url><blocked>true</blocked></mirror>
  <mirror><id>h</id><mirrorOf>external:http:*</mirrorOf><url>http://plain.test/</url></mirror>
  <mirror><id>n</id><mirrorOf>*,!central</mirrorOf><url>http://not.test/</url></mirror>
  <mirror><id>m</id><mirrorOf>jboss, central</mirrorOf><url>https://mine.test/m2?x</url></mirror>
</mirrors></settings>";

#[test]
fn mavens_mirror_beats_its_super_pom() {
    let directory = tempfile::tempdir().unwrap();
    let (root, home) = (directory.path(), directory.path().join("home"));
    let machine = Machine::at(root, Some(&home), &[("PW", "p&w")]);
    assert_eq!(address(&machine, "central"), None);

    let mut jar = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    jar.start_file("org/apache/maven/model/pom-4.0.0.xml", options).unwrap();
    let pom = "<project><repositories><repository><id>central</id><url>https://super.test/m2</url></repository>\
               </repositories></project>";
    std::io::Write::write_all(&mut jar, pom.as_bytes()).unwrap();
    fs::create_dir_all(root.join("usr/share/maven/lib")).unwrap();
    let bytes = jar.finish().unwrap().into_inner();
    fs::write(root.join("usr/share/maven/lib/maven-model-builder-3.x.jar"), bytes).unwrap();
    assert_eq!(address(&machine, "central").unwrap(), "https://super.test/m2/");

    write(root, "etc/maven/settings.xml", "<settings><mirrors/></settings>");
    write(&home, ".m2/settings.xml", &SETTINGS.replace("?x", ""));
    assert_eq!(address(&machine, "central").unwrap(), "https://u:p&w@mine.test/m2/");
}

#[test]
fn pips_configuration_beats_its_source() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let machine = Machine::at(root, None, &[]);
    assert_eq!(address(&machine, "pypi"), None);
    let source =
        "import x\n\nPyPI = PackageIndex(\n    \"https://index.test/\", file_storage_domain=\"files.test\"\n)\n";
    write(root, "usr/lib/python3/dist-packages/pip/_internal/models/index.py", source);
    assert_eq!(address(&machine, "pypi").unwrap(), "https://index.test/simple/");
    write(root, "etc/pip.conf", "[freeze]\nindex-url = http://no.test\n[global]\nindex-url = http://yes.test/simple\n");
    assert_eq!(address(&machine, "pypi").unwrap(), "http://yes.test/simple/");
    let machine = Machine::at(root, None, &[("PIP_INDEX_URL", "http://variable.test/s")]);
    assert_eq!(address(&machine, "pypi").unwrap(), "http://variable.test/s/");
}

fn origins(directory: &Path, given: &[(&str, &str)]) -> Origins {
    let given: Vec<(String, String)> = given.iter().map(|(name, url)| ((*name).into(), (*url).into())).collect();
    let options = OriginOptions::new(given.iter().map(|(name, url)| (name, url)), false, None).unwrap();
    Origins::new(options, Machine::at(directory, None, &[]), directory)
}

fn known(origins: &Origins, id: &str, url: &str) -> String {
    match origins.declare(id, url).unwrap() {
        Declared::Known(name) => name.to_string(),
        Declared::LeftOut(reason) => panic!("{id} {url} {reason}"),
    }
}

fn resolved(origins: &Origins, name: &str) -> String {
    origins.resolve(&name.parse().unwrap()).unwrap().addresses[0].url().to_string()
}

#[test]
fn recorded_origins_are_kept_and_the_last_to_be_asked() {
    let directory = tempfile::tempdir().unwrap();
    let origins = origins(directory.path(), &[]);
    let name: OriginName = "jboss".parse().unwrap();
    let error = origins.resolve(&name).unwrap_err();
    assert!(error.hint().unwrap().contains("--origin jboss=URL"), "{error}");
    assert!(origins.recorded().add(&name, &"https://one.test/".parse().unwrap()).unwrap());
    assert!(!origins.recorded().add(&name, &"https://two.test/".parse().unwrap()).unwrap());
    let origin = origins.resolve(&name).unwrap();
    assert_eq!(origin.source, AddressSource::Recorded);
    assert_eq!(origin.addresses[0].url().as_str(), "https://one.test/");
    fs::write(directory.path().join("origins.toml"), "schema = 2\n").unwrap();
    assert!(matches!(origins.resolve(&name), Err(OriginError::Malformed { .. })));
}

#[test]
fn a_pom_names_nothing_of_this_machine_or_of_its_networks() {
    let directory = tempfile::tempdir().unwrap();
    let origins = origins(directory.path(), &[("mine", "file:///mirror"), ("inner", "http://10.0.0.1/")]);
    let left_out = |id: &str, url: &str| match origins.declare(id, url).unwrap() {
        Declared::LeftOut(reason) => reason,
        Declared::Known(name) => panic!("{url} is known as {name}"),
    };
    for url in ["file:///", "file:///root/.m2/", "ftp://x.test/", "${url}", "", "http://", "jar:file:///x!/"] {
        assert_eq!(left_out("x", url), LeftOut::Address, "{url}");
    }
    for host in [
        "localhost",
        "LOCALHOST.:8080",
        "a.localhost",
        "localhost.localdomain",
        "metadata.google.internal",
        "printer.local",
        "127.0.0.1",
        "user:password@127.8.8.8:9",
        "2130706433",
        "0x7f.1",
        "0",
        "10.1.2.3",
        "172.31.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::169.254.169.254]",
        "[2002:7f00:1::]",
    ] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}/m2");
            assert_eq!(left_out("x", &url), LeftOut::Private, "{url}");
        }
    }
    for id in ["", "../x", "a b"] {
        assert_eq!(left_out(id, "https://repository.test/"), LeftOut::Id, "{id}");
    }
    assert!(!directory.path().join("origins.toml").exists(), "nothing of all that is remembered");
    for host in ["repository.test", "notlocal", "8.8.8.8", "172.32.0.1", "[2606:4700::1111]", "[2002:808:808::]"] {
        let id: String = host.chars().filter(char::is_ascii_alphanumeric).collect();
        assert_eq!(known(&origins, &id, &format!("http://{host}/")), id);
    }
    // What the user says holds, whatever the POM says.
    assert_eq!(known(&origins, "mine", "file:///etc"), "mine");
    assert_eq!(resolved(&origins, "mine"), "file:///mirror/");
    assert_eq!(known(&origins, "inner", "http://192.168.0.1/"), "inner");
    assert_eq!(resolved(&origins, "inner"), "http://10.0.0.1/");
}

#[test]
fn what_an_older_program_remembered_is_not_believed_either() {
    let directory = tempfile::tempdir().unwrap();
    let text = "schema = 1\n[origins]\nx = \"file:///\"\ny = \"http://169.254.169.254/\"\n\
                pypi = \"http://127.0.0.1/\"\ndebian = \"https://public.test/\"\nz = \"https://public.test/\"\n";
    fs::write(directory.path().join("origins.toml"), text).unwrap();
    let origins = origins(directory.path(), &[]);
    for name in ["x", "y", "pypi"] {
        let error = origins.resolve(&name.parse().unwrap()).unwrap_err();
        assert!(matches!(error, OriginError::Private { .. }), "{error}");
        assert!(error.hint().unwrap().contains(&format!("--origin {name}=URL")));
    }
    assert!(matches!(origins.resolve(&OriginName::debian()), Err(OriginError::Unknown { .. })));
    assert_eq!(resolved(&origins, "z"), "https://public.test/");
}

#[test]
fn what_lies_in_a_tree_has_no_address() {
    let directory = tempfile::tempdir().unwrap();
    let origins = origins(directory.path(), &[]);
    let error = origins.resolve(&OriginName::project_tree()).unwrap_err();
    assert!(error.hint().unwrap().contains("run `testevo-sandbox lock` for it"), "{error}");
    // A POM's own repository of that name is another one.
    let declared = origins.declare("project-tree", "https://public.test/").unwrap();
    assert!(matches!(&declared, Declared::Known(name) if name.as_str().starts_with("project-tree-")), "{declared:?}");
}

#[test]
fn a_name_means_one_address() {
    let directory = tempfile::tempdir().unwrap();
    let origins = origins(directory.path(), &[("mirrored", "https://mirror.test/")]);
    let (evil, good) = ("https://evil.test/", "https://good.test/m2");
    assert_eq!(known(&origins, "spring", evil), "spring");
    let other = known(&origins, "spring", good);
    assert_eq!(other, format!("spring-{}", &crate::digest::Digest::of(b"https://good.test/m2/").hex()[..8]));
    assert_eq!(resolved(&origins, &other), "https://good.test/m2/");
    assert_eq!(resolved(&origins, "spring"), evil);
    // The same again is the same name, and without the last slash it is the same address.
    assert_eq!(known(&origins, "spring", "https://good.test/m2/"), other);
    assert_eq!(known(&origins, "spring", evil), "spring");

    // A stranger who claims the longer name in advance does not get it either.
    let next = known(&origins, "spring", "https://next.test/");
    assert_ne!(next, other);
    let before = tempfile::tempdir().unwrap();
    let claimed = self::origins(before.path(), &[]);
    assert_eq!(known(&claimed, &other, evil), other);
    assert_eq!(known(&claimed, "spring", evil), "spring");
    let longer = known(&claimed, "spring", good);
    assert!(longer.starts_with(&other) && longer.len() == "spring-".len() + 16, "{longer}");
    assert_eq!(resolved(&claimed, &longer), "https://good.test/m2/");

    // Reserved names and those of the user are never a POM's.
    for id in ["pypi", "debian"] {
        let name = known(&origins, id, evil);
        assert!(name.starts_with(&format!("{id}-")), "{name}");
        assert!(matches!(origins.resolve(&id.parse().unwrap()), Err(OriginError::Unknown { .. })));
    }
    assert_eq!(known(&origins, "central", evil), "central");
    assert!(origins.resolve(&OriginName::central()).is_err(), "a POM does not say where central is");
    assert_eq!(known(&origins, "mirrored", evil), "mirrored");
    assert_eq!(resolved(&origins, "mirrored"), "https://mirror.test/");
    // The user may say where an address of a longer name is to be had.
    let moved = self::origins(directory.path(), &[(&other, "file:///mirror/good")]);
    assert_eq!(known(&moved, "spring", good), other);
    assert_eq!(resolved(&moved, &other), "file:///mirror/good/");
    // Names stay names, however long an id is.
    let long = "x".repeat(100);
    assert_eq!(known(&origins, &long, evil), long);
    assert_eq!(known(&origins, &long, good).len(), 100);
}

#[test]
fn a_lock_of_another_machine_finds_its_origin() {
    let directory = tempfile::tempdir().unwrap();
    let origins = origins(directory.path(), &[]);
    assert_eq!(known(&origins, "spring", "https://good.test/m2"), "spring");
    // There another address had the short name first.
    let hex = crate::digest::Digest::of(b"https://good.test/m2/").hex();
    assert_eq!(resolved(&origins, &format!("spring-{}", &hex[..8])), "https://good.test/m2/");
    for name in ["spring-00000000".to_owned(), format!("spring-{}", &hex[..1]), format!("other-{}", &hex[..8])] {
        assert!(matches!(origins.resolve(&name.parse().unwrap()), Err(OriginError::Unknown { .. })), "{name}");
    }
}

#[test]
fn repositories_that_are_declared_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<(String, String)> = std::thread::scope(|scope| {
        let declaring: Vec<_> = (0..16)
            .map(|number| {
                let directory = directory.path();
                scope.spawn(move || {
                    let url = format!("https://host-{number}.test/");
                    (known(&origins(directory, &[]), "same", &url), url)
                })
            })
            .collect();
        declaring.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (name, url) in &names {
        assert_eq!(resolved(&origins(directory.path(), &[]), name), *url);
    }
    assert_eq!(names.iter().map(|(name, _)| name).collect::<std::collections::BTreeSet<_>>().len(), 16);
}

#[test]
fn what_the_user_gave_comes_first() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "etc/pip.conf", "[global]\nindex-url = http://client.test/simple\n");
    let machine = Machine::at(directory.path(), None, &[]);
    let given = BTreeMap::from([("pypi".to_owned(), "http://a.test/s http://b.test/s".to_owned())]);
    let options = OriginOptions::new(&given, false, None).unwrap();
    let origin = Origins::new(options, machine, directory.path()).resolve(&OriginName::pypi()).unwrap();
    let shown: Vec<&str> = origin.addresses.iter().map(|address| address.url().as_str()).collect();
    assert_eq!((shown, origin.source), (vec!["http://a.test/s/", "http://b.test/s/"], AddressSource::Settings));
    for bad in ["", "gopher://user:secret@host/"] {
        let given = BTreeMap::from([("pypi".to_owned(), bad.to_owned())]);
        let text = OriginOptions::new(&given, false, None).unwrap_err().to_string();
        assert!(text.contains("`pypi`") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn logins_of_apt_and_pip_are_used_for_their_machines_only() {
    let directory = tempfile::tempdir().unwrap();
    let (root, home) = (directory.path(), directory.path().join("home"));
    write(root, "etc/apt/sources.list", "deb https://mirror.test:8443/team/debian trixie main\n");
    write(&home, ".netrc", "machine other.test login no password no\nmachine index.test\n  login u\n  password p\n");
    let machine = Machine::at(root, Some(&home), &[("PIP_INDEX_URL", "https://index.test/simple")]);
    assert_eq!(address(&machine, "pypi").unwrap(), "https://u:p@index.test/simple/");
    for (text, found) in [
        ("machine mirror.test login a password b", true),
        ("# machine mirror.test login a password b", false),
        ("machine mirror.test:8443/team login a password b", true),
        ("machine mirror.test:443 login a password b", false),
        ("machine mirror.test/other login a password b", false),
        ("machine https://mirror.test login a password b", true),
        ("machine http://mirror.test login a password b", false),
        ("machine test login a password b", false),
    ] {
        write(root, "etc/apt/auth.conf.d/x.conf", text);
        assert_eq!(address(&machine, "debian").unwrap().contains("a:b@"), found, "{text}");
    }
    let plain = Machine::at(root, Some(&home), &[("PIP_INDEX_URL", "http://index.test/simple")]);
    assert_eq!(address(&plain, "pypi").unwrap(), "http://index.test/simple/");
}
