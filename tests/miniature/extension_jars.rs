//! A jar of the user's: its packages are there for the compiler and the launched JVM on both paths, and nothing else is.

use std::io::Write as _;

use testevo_sandbox::digest::Digest;
use testevo_sandbox::lock::{LockFile as _, RepositoryLock};
use testevo_sandbox::sample::SampleRepository;

use super::workshop::Workshop;

const REPOSITORY: &str = r#"repository = "testevo/gone-8"
jdk = 8
-- pom.xml --
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>miniature</groupId>
  <artifactId>gone</artifactId>
  <version>1.0</version>
  <properties>
    <maven.compiler.source>1.8</maven.compiler.source>
    <maven.compiler.target>1.8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>junit</groupId>
      <artifactId>junit</artifactId>
      <version>4.13.2</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build>
    <pluginManagement>
      @plugins@
    </pluginManagement>
  </build>
</project>
"#;

const MINIATURE: &str = r#"shows = "a package that the JDK lacks"
track = "test_update"
test_file = "src/test/java/mini/NodeTest.java"
methods = ["NodeTest#isNamed"]
focal = [{ method = "Node#name", file = "src/main/java/mini/Node.java", anchor = "name(" }]

[expected."NodeTest#isNamed"]
oo = "pass"
nn = "pass"
on = "exec_fail(assertion)"
no = "exec_fail(assertion)"
-- old/src/main/java/mini/Node.java --
package mini;

class Node {
    static String name() {
        return javafx.scene.Gone.class.getSimpleName();
    }
}
-- old/src/test/java/mini/NodeTest.java --
package mini;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class NodeTest {
    @Test
    public void isNamed() {
        assertEquals("Gone", Node.name());
    }
}
-- new/src/main/java/mini/Node.java --
package mini;

class Node {
    static String name() {
        return javafx.scene.Gone.class.getName();
    }
}
-- new/src/test/java/mini/NodeTest.java --
package mini;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class NodeTest {
    @Test
    public void isNamed() {
        assertEquals("javafx.scene.Gone", Node.name());
    }
}
"#;

/// A jar with the one class `javafx.scene.Gone`, for Java 8.
fn jar() -> Vec<u8> {
    let mut class = b"\xca\xfe\xba\xbe\0\0\0\x34\0\x05\x07\0\x02\x01\0\x11javafx/scene/Gone\x07\0\x04".to_vec();
    // A public class with a superclass, and without interfaces, fields, methods and attributes.
    class.extend(b"\x01\0\x10java/lang/Object\0\x21\0\x01\0\x03\0\0\0\0\0\0\0\0");
    let mut jar = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    jar.start_file("javafx/scene/Gone.class", zip::write::SimpleFileOptions::default()).unwrap();
    jar.write_all(&class).unwrap();
    jar.finish().unwrap().into_inner()
}

#[test]
#[ignore = "resolves a repository twice"]
fn full_a_jar_of_the_users_reaches_compiler_and_launch() {
    let repository = SampleRepository::parse(REPOSITORY, &[("1-gone", MINIATURE)]).unwrap();
    let workshop = Workshop::apart(&repository);
    let name = repository.name.as_str();

    workshop.prepare(&repository, "");
    let (code, said) = workshop.try_run(&["validate", name, "--no-confirm", "--path", "maven"]);
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("lacks javafx.scene, which other JDKs have"), "{said}");
    assert!(RepositoryLock::load(&workshop.lock_path(&repository.name)).unwrap().extension_jars.is_empty());

    let bytes = jar();
    let digest = Digest::of(&bytes);
    fs_err::write(workshop.data_dir.join("manifests/gone.jar"), &bytes).unwrap();
    let overrides = format!("\n[[overrides.extension_jars]]\nfile = \"gone.jar\"\nsha256 = \"{digest}\"\n");
    workshop.import(&repository, &overrides);
    let (code, said) = workshop.try_run(&["build-images", "--proof", "none", name]);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("with other extension jars than its manifest has now"), "{said}");
    workshop.run(&["lock", name]);
    let [locked] = RepositoryLock::load(&workshop.lock_path(&repository.name)).unwrap().extension_jars[..] else {
        panic!("{said}")
    };
    assert_eq!((locked.sha256, locked.size), (digest, bytes.len() as u64));
    workshop.run(&["build-images", "--proof", "none", name]);
    for path in ["maven", "direct"] {
        workshop.run(&["validate", name, "--no-confirm", "--path", path]);
    }
}
