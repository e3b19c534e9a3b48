//! `lock` as a user runs it, with a real engine and real Maven: once, again, anew, and to compare. Resolving anew asks the
//! origins in every run of the tests.

use fs_err as fs;
use insta::assert_snapshot;
use serde_json::Value;
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::lock::{LockFile as _, MavenFile, RepositoryLock};
use testevo_sandbox::sample::SampleRepository;

use super::verdict::summary;
use super::workshop::Workshop;

/// A project whose build installs its modules, and another jar beside them, into the cache that it resolves from; the
/// version of one plugin is chosen.
const REPOSITORY: &str = r#"repository = "testevo/installs-8"
jdk = 8
-- pom.xml --
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>miniature.installs</groupId>
  <artifactId>parent</artifactId>
  <version>1.0</version>
  <packaging>pom</packaging>
  <modules>
    <module>core</module>
    <module>app</module>
  </modules>
  <properties>
    <maven.compiler.source>1.8</maven.compiler.source>
    <maven.compiler.target>1.8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <build>
    <pluginManagement>
      @plugins@
    </pluginManagement>
    <plugins>
      <plugin>
        <artifactId>maven-install-plugin</artifactId>
        <executions>
          <execution>
            <id>early</id>
            <phase>generate-test-resources</phase>
            <goals><goal>install</goal></goals>
          </execution>
        </executions>
      </plugin>
    </plugins>
  </build>
</project>
-- core/pom.xml --
<project>
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>miniature.installs</groupId>
    <artifactId>parent</artifactId>
    <version>1.0</version>
  </parent>
  <artifactId>core</artifactId>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-jar-plugin</artifactId>
        <executions>
          <execution>
            <id>default-jar</id>
            <phase>process-classes</phase>
          </execution>
        </executions>
      </plugin>
    </plugins>
  </build>
</project>
-- app/pom.xml --
<project>
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>miniature.installs</groupId>
    <artifactId>parent</artifactId>
    <version>1.0</version>
  </parent>
  <artifactId>app</artifactId>
  <dependencies>
    <dependency>
      <groupId>miniature.installs</groupId>
      <artifactId>core</artifactId>
      <version>${project.version}</version>
    </dependency>
    <dependency>
      <groupId>junit</groupId>
      <artifactId>junit</artifactId>
      <version>4.13.2</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-jar-plugin</artifactId>
        <executions>
          <execution>
            <id>default-jar</id>
            <phase>process-classes</phase>
          </execution>
        </executions>
      </plugin>
    </plugins>
  </build>
</project>
-- core/src/main/java/mini/core/Text.java --
package mini.core;

public class Text {
    public static String quoted(String text) {
        return '"' + text + '"';
    }
}
"#;

const MINIATURE: &str = r#"shows = "a build that installs what it made"
track = "test_update"
test_file = "app/src/test/java/mini/AppTest.java"
methods = ["AppTest#quotes"]
focal = [{ method = "App#said", file = "app/src/main/java/mini/App.java", anchor = "said(" }]

[expected."AppTest#quotes"]
oo = "pass"
nn = "pass"
on = "exec_fail(assertion)"
no = "exec_fail(assertion)"
-- old/app/src/main/java/mini/App.java --
package mini;

class App {
    static String said() {
        return "yes";
    }
}
-- old/app/src/test/java/mini/AppTest.java --
package mini;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class AppTest {
    @Test
    public void quotes() {
        assertEquals("yes", App.said());
    }
}
-- new/app/src/main/java/mini/App.java --
package mini;

class App {
    static String said() {
        return mini.core.Text.quoted("yes");
    }
}
-- new/app/src/test/java/mini/AppTest.java --
package mini;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class AppTest {
    @Test
    public void quotes() {
        assertEquals("\"yes\"", App.said());
    }
}
"#;

#[test]
fn a_lock_is_kept_completed_compared_and_resolved_anew() {
    let repository = SampleRepository::parse(REPOSITORY, &[("1-installs", MINIATURE)]).unwrap();
    let workshop = Workshop::apart(&repository);
    workshop.import(&repository, "");
    let path = workshop.lock_path(&repository.name);
    let name = repository.name.as_str();
    let lock = |more: &[&str]| {
        let arguments = [&["lock", name, "--format", "json"], more].concat();
        let output = workshop.command(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        let [resolved, fetched] = ["lock: 1 done", "download: "].map(|stage| said.contains(stage));
        (output.status.code(), summary(&output), resolved, fetched, said)
    };
    let (code, locked, resolved, _, said) = lock(&[]);
    assert_eq!((code, resolved), (Some(0), true), "{said}");
    assert_eq!((&locked["missing_build_sets"], &locked["unresolved"]), (&0.into(), &Value::Array(vec![])), "{locked}");
    let first = fs::read(&path).unwrap();
    only_what_origins_have_is_named(&RepositoryLock::load(&path).unwrap());

    // Nothing is new: nothing is resolved, no byte of the locks changes, and they are as they should be.
    let toolchain = || fs::read(workshop.data_dir.join("locks/toolchain.lock")).unwrap();
    let before = toolchain();
    let (code, again, resolved, fetched, said) = lock(&[]);
    assert_eq!((code, &again, resolved, fetched), (Some(0), &locked, false, false), "{said}");
    assert_eq!((fs::read(&path).unwrap() == first, toolchain() == before), (true, true));
    let history = workshop.data_dir.join("locks/history");
    assert_eq!(fs::read_dir(&history).unwrap().count(), 0);
    assert_snapshot!("check-whole", check(&workshop, name));

    // What a lock lacks is named, and resolved to what it was.
    let whole = RepositoryLock::load(&path).unwrap();
    assert!(whole.files.len() > 100, "{}", whole.files.len());
    let torn = RepositoryLock { files: Vec::new(), build_sets: Vec::new(), ..whole.clone() };
    torn.store(&path).unwrap();
    assert_snapshot!("check-torn", check(&workshop, name));
    assert_eq!(RepositoryLock::load(&path).unwrap(), torn, "to compare changes nothing");
    let (code, _, resolved, _, said) = lock(&[]);
    assert_eq!((code, resolved), (Some(0), true), "{said}");
    assert!(fs::read(&path).unwrap() == first);

    // What nothing needs any more stays, until all is resolved anew; what was there then is remembered.
    let content = b"needed by nobody";
    let digest = Store::of(&DataDir::open(&workshop.data_dir).unwrap()).unwrap().put(content).unwrap();
    let mut grown = whole;
    grown.files.push(MavenFile {
        path: "zzz/nobody/1/nobody-1.jar".to_owned(),
        sha256: digest,
        size: content.len() as u64,
        ..grown.files[0].clone()
    });
    grown.store(&path).unwrap();
    let (code, _, resolved, _, said) = lock(&[]);
    assert_eq!((code, resolved), (Some(0), false), "{said}");
    assert_eq!(RepositoryLock::load(&path).unwrap(), grown);
    let (code, anew, resolved, _, said) = lock(&["--update"]);
    assert_eq!((code, resolved), (Some(0), true), "{said}");
    assert_eq!(anew, locked);
    assert!(fs::read(&path).unwrap() == first);
    let kept = history.join(format!("{}.lock", grown.digest().hex()));
    assert_eq!(RepositoryLock::load(&kept).unwrap(), grown);
}

/// One set of build files needs what only a dead origin had. That set is named, with the origin and the artifacts; all others
/// stay resolved.
pub(super) fn an_origin_that_is_gone_is_named(workshop: &Workshop, repository: &SampleRepository) {
    let lock = || RepositoryLock::load(&workshop.lock_path(&repository.name)).unwrap();
    let resolved = lock().build_sets;
    assert!(resolved.len() > 1, "{resolved:?}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("gone=http://{}", listener.local_addr().unwrap());
    drop(listener);
    let one = "the origin `gone` could not be reached for `miniature/gone/first/1.0/first-1.0.pom`";
    for (origin, cause) in [(closed.as_str(), one), ("gone=", "none of them has it")] {
        let arguments = ["lock", repository.name.as_str(), "--origin", origin, "--format", "json"];
        let output = workshop.command(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(
            said.contains("1 set of build files of testevo/builds-17 is unresolved: miniature.gone:first:"),
            "{said}"
        );
        assert!(said.contains("or with `--origin gone=` that an origin is gone"), "{said}");
        let locked = summary(&output);
        let [set] = locked["unresolved"].as_array().unwrap().as_slice() else { panic!("{locked}") };
        let artifact = &set["artifacts"][0];
        assert_eq!(artifact["origins"].as_array().unwrap().last().unwrap(), "gone", "{locked}");
        assert!(artifact["cause"].as_str().unwrap().starts_with(cause), "{locked}");
        assert_eq!(lock().build_sets, resolved);
        assert_eq!(lock().unresolved.len(), set["artifacts"].as_array().unwrap().len());
    }
}

/// Says what `lock --check` does, but for how large the lock is.
fn check(workshop: &Workshop, repository: &str) -> String {
    let output = workshop.command(&["lock", "--check", "--format", "json", repository]).output().unwrap();
    let mut locked = summary(&output);
    for size in ["files", "bytes", "metadata"] {
        assert!(locked[size].is_u64(), "{locked}");
        locked.as_object_mut().unwrap().remove(size);
    }
    let said = String::from_utf8(output.stderr).unwrap();
    format!("exit {}\n{locked}\n{said}", output.status.code().unwrap())
}

/// The build's own modules were installed into the cache, by a plugin that the lock names; they are no part of it, nor is
/// anything that Maven notes beside artifacts.
fn only_what_origins_have_is_named(lock: &RepositoryLock) {
    let paths: Vec<&str> = lock
        .files
        .iter()
        .map(|file| file.path.as_str())
        .chain(lock.metadata.iter().map(|frozen| frozen.path.as_str()))
        .collect();
    for needed in ["maven-install-plugin-3.1.2.jar", "maven-jar-plugin-3.4.1.jar", "junit-4.13.2.jar"] {
        assert!(paths.iter().any(|path| path.ends_with(&format!("/{needed}"))), "{needed}: {paths:#?}");
    }
    for path in paths {
        let name = path.rsplit('/').next().unwrap();
        let noted = ["_remote.repositories", "resolver-status.properties", "maven-metadata-local.xml"].contains(&name)
            || [".lastUpdated", ".sha1", ".md5"].iter().any(|end| name.ends_with(end));
        assert!(!noted && !path.starts_with("miniature/"), "{path}");
    }
    assert!(lock.files.iter().all(|file| !file.own));
}
