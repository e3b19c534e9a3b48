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

#[test]
fn recorded_origins_are_kept_and_the_last_to_be_asked() {
    let directory = tempfile::tempdir().unwrap();
    let origins = Origins::new(OriginOptions::default(), Machine::at(directory.path(), None, &[]), directory.path());
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
