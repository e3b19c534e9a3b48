//! The inputs of an image, as a pure function of the locks.
//!
//! A recipe names every input by digest and contains the bytes of every generated file. So the digest of a layer's
//! recipe is the key of the finished layer. A recipe depends on no task and no source of a project.

use serde::Serialize;

use super::ImageError;
use super::path::TreePath;
use crate::digest::Digest;
use crate::engine::spec::{TASK_USER, groups_file, users_file};
use crate::lock::{ARCHITECTURE, DebianPackage, LayerKind, RepositoryLock, ToolFile, ToolRole, ToolchainLock};
use crate::manifest::EXTENSIBLE_JDK;
use crate::task::RepositoryName;

/// Version of the composition of layers from locks. It rises with every change that can change a layer's bytes.
pub const RECIPE_VERSION: u32 = 4;

/// The Maven cache's path in images, without the leading slash.
pub const MAVEN_REPOSITORY: &str = "opt/maven-repository";

/// The list of development kits in images. Maven reads it under another path.
const MAVEN_TOOLCHAINS: &str = "/usr/lib/jvm/toolchains.xml";

const AGENT_GIT_CONFIGURATION: &str =
    "[safe]\n\tdirectory = *\n[user]\n\tname = agent\n\temail = agent@localhost\n[init]\n\tdefaultBranch = main\n";

const MAVEN_SETTINGS: &str = include_str!("../../images/settings.xml");

/// The inputs of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRecipe {
    /// Major version of the Java development kit.
    pub jdk: u32,
    /// The repository whose Maven cache is in the image; `None` for a toolchain alone.
    pub repository: Option<RepositoryName>,
    /// The layers, lowest first.
    pub layers: Vec<LayerRecipe>,
}

/// The inputs of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerRecipe {
    /// The part of the image.
    pub kind: LayerKind,
    /// The sources, in order. Later ones see files of earlier ones.
    pub sources: Vec<Source>,
}

/// One input of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Source {
    /// A Debian package.
    Package(Package),
    /// A file of the store, unchanged.
    Blob {
        /// Its path in the image.
        path: TreePath,
        /// Its digest.
        digest: Digest,
        /// Size in bytes.
        size: u64,
    },
    /// A gzip-compressed tar archive whose first directory is left out.
    Tarball {
        /// Its file name.
        name: String,
        /// Its digest.
        digest: Digest,
        /// The directory for its content.
        into: TreePath,
    },
    /// A wheel or source archive of a Python project.
    PythonDistribution {
        /// Its file name.
        name: String,
        /// Its digest.
        digest: Digest,
        /// The site directory.
        into: TreePath,
    },
    /// A directory.
    Directory {
        /// Its path in the image.
        path: TreePath,
        /// Permissions.
        mode: u32,
        /// Numeric owner and group.
        owner: u32,
    },
    /// A file whose content follows from the recipe alone.
    Text {
        /// Its path in the image.
        path: TreePath,
        /// Permissions.
        mode: u32,
        /// Its text.
        content: String,
    },
    /// A symbolic link.
    Symlink {
        /// Its path in the image.
        path: TreePath,
        /// The link's text.
        target: String,
    },
    /// A symbolic link that is created only if its target exists in the same directory: Debian's alternatives.
    Alternative {
        /// Its path in the image.
        path: TreePath,
        /// A name in the same directory.
        target: String,
    },
    /// The files that certificate packages' scripts generate, made from the certificates in the layer.
    TrustStores,
}

impl Source {
    /// Returns the digest of the blob that the source reads, if any.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Package(Package { digest, .. })
            | Self::Blob { digest, .. }
            | Self::Tarball { digest, .. }
            | Self::PythonDistribution { digest, .. } => Some(*digest),
            Self::Directory { .. }
            | Self::Text { .. }
            | Self::Symlink { .. }
            | Self::Alternative { .. }
            | Self::TrustStores => None,
        }
    }
}

/// The fields of a Debian package that decide a layer's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Full version.
    pub version: String,
    /// `amd64` or `all`.
    pub architecture: String,
    /// Digest of the `.deb`.
    pub digest: Digest,
    /// Size of the `.deb` in bytes.
    pub size: u64,
}

impl ImageRecipe {
    /// Returns the recipe for the locks.
    ///
    /// # Errors
    /// [`ImageError::UnknownJdk`] if the toolchain has no such development kit; [`ImageError::Lock`] if a lock names an
    /// entry that can't be placed in an image.
    pub fn new(toolchain: &ToolchainLock, jdk: u32, repository: Option<&RepositoryLock>) -> Result<Self, ImageError> {
        let mut layers = vec![base_layer(toolchain)?, jdk_layer(toolchain, jdk)?, tools_layer(toolchain)?];
        if let Some(repository) = repository {
            layers.push(maven_cache_layer(repository)?);
        }
        Ok(Self { jdk, repository: repository.map(|lock| lock.repository.clone()), layers })
    }

    /// Returns the recipe of an image whose layers are finished, such as one from a bundle. It is enough for one more layer on top.
    pub fn of_finished(jdk: u32, repository: RepositoryName) -> Self {
        Self { jdk, repository: Some(repository), layers: Vec::new() }
    }

    /// Returns the recipe with the tools of agents on top.
    ///
    /// # Errors
    /// [`ImageError::Lock`] if the lock names a package that can't be placed in an image.
    pub fn with_agent_tools(mut self, toolchain: &ToolchainLock) -> Result<Self, ImageError> {
        self.layers.push(agent_layer(toolchain, self.jdk)?);
        Ok(self)
    }
}

/// Returns the path of the Java development kit in images.
pub fn java_home(jdk: u32) -> String {
    format!("/usr/lib/jvm/java-{jdk}-openjdk-{ARCHITECTURE}")
}

/// Returns the directory whose jars the compiler and every JVM of the development kit have on their class paths, without
/// the leading slash.
fn extension_directory(jdk: u32) -> Result<String, ImageError> {
    match jdk {
        EXTENSIBLE_JDK => Ok(format!("{}/jre/lib/ext", java_home(jdk).trim_start_matches('/'))),
        _ => Err(ImageError::Lock { reason: format!("it has extension jars, which a JDK {jdk} can't have") }),
    }
}

fn base_layer(toolchain: &ToolchainLock) -> Result<LayerRecipe, ImageError> {
    let mut sources = Vec::new();
    for directory in ["bin", "lib", "lib64", "sbin"] {
        sources.push(symlink(directory, &format!("usr/{directory}"))?);
    }
    for (link, target) in [("var/lock", "/run/lock"), ("var/run", "/run")] {
        sources.push(symlink(link, target)?);
    }
    for (directory, mode) in [("tmp", 0o1777), ("var/tmp", 0o1777), ("root", 0o700)] {
        sources.push(directory_of(directory, mode, 0)?);
    }
    for directory in ["dev", "proc", "run", "sys", "testevo", "usr/local/bin"] {
        sources.push(directory_of(directory, 0o755, 0)?);
    }
    for directory in ["work", "work/home"] {
        sources.push(directory_of(directory, 0o755, TASK_USER)?);
    }
    sources.extend(packages(&toolchain.base)?);
    for (name, target) in [("awk", "mawk"), ("nawk", "mawk"), ("which", "which.debianutils"), ("sh", "dash")] {
        let path = tree_path(&format!("usr/bin/{name}"))?;
        sources.push(Source::Alternative { path, target: target.to_owned() });
    }
    // Compiling a locale would require running the system's tools, and no package contains this one. So C's locale
    // takes its name: it has the same encoding and English texts. Programs that ask for language and country get en_US.
    sources.push(Source::Alternative { path: tree_path("usr/lib/locale/en_US.utf8")?, target: "C.utf8".to_owned() });
    for (path, content) in [
        ("etc/passwd", users_file(TASK_USER)),
        ("etc/group", groups_file(TASK_USER)),
        (
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n".to_owned(),
        ),
        ("etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned()),
        ("etc/resolv.conf", String::new()),
        ("etc/timezone", "Etc/UTC\n".to_owned()),
    ] {
        sources.push(Source::Text { path: tree_path(path)?, mode: 0o644, content });
    }
    sources.push(symlink("etc/localtime", "/usr/share/zoneinfo/Etc/UTC")?);
    sources.push(Source::TrustStores);
    Ok(LayerRecipe { kind: LayerKind::Base, sources })
}

fn jdk_layer(toolchain: &ToolchainLock, jdk: u32) -> Result<LayerRecipe, ImageError> {
    let Some(lock) = toolchain.jdks.iter().find(|lock| lock.major == jdk) else {
        let known = toolchain.jdks.iter().map(|lock| lock.major).collect();
        return Err(ImageError::UnknownJdk { jdk, known });
    };
    let mut sources = packages(&lock.packages)?;
    let home = java_home(jdk);
    sources.push(text(MAVEN_TOOLCHAINS.trim_start_matches('/'), 0o644, &maven_toolchains(jdk, &home))?);
    sources.push(symlink("usr/lib/jvm/default-java", home.trim_start_matches("/usr/lib/jvm/"))?);
    for program in ["jar", "java", "javac", "javadoc", "javap", "keytool"] {
        sources.push(symlink(&format!("usr/bin/{program}"), &format!("{home}/bin/{program}"))?);
    }
    Ok(LayerRecipe { kind: LayerKind::Jdk, sources })
}

/// Returns Maven's list of development kits, for builds that choose a kit by version or vendor. It lists the image's
/// only kit under every name that a POM may use.
fn maven_toolchains(jdk: u32, home: &str) -> String {
    let versions = if jdk == 8 { vec!["1.8".to_owned(), "8".to_owned()] } else { vec![jdk.to_string()] };
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<toolchains>\n");
    for version in versions {
        for vendor in ["openjdk", "adopt", "adoptopenjdk", "debian", "oracle", "sun", "temurin", "zulu"] {
            text.push_str(&format!(
                "  <toolchain>\n    <type>jdk</type>\n    <provides>\n      <version>{version}</version>\n      \
                 <vendor>{vendor}</vendor>\n    </provides>\n    <configuration>\n      <jdkHome>{home}</jdkHome>\n    \
                 </configuration>\n  </toolchain>\n"
            ));
        }
    }
    text.push_str("</toolchains>\n");
    text
}

fn tools_layer(toolchain: &ToolchainLock) -> Result<LayerRecipe, ImageError> {
    let mut sources = packages(&toolchain.tools_packages)?;
    let mut tools: Vec<&ToolFile> = toolchain.tools.iter().collect();
    tools.sort_by(|left, right| (left.role, &left.name, &left.path).cmp(&(right.role, &right.name, &right.path)));
    for tool in tools {
        sources.push(tool_source(tool)?);
    }
    sources.push(text("opt/maven/conf/settings.xml", 0o644, MAVEN_SETTINGS)?);
    sources.push(symlink("opt/maven/conf/toolchains.xml", MAVEN_TOOLCHAINS)?);
    sources.push(symlink("usr/bin/mvn", "/opt/maven/bin/mvn")?);
    sources.push(directory_of(MAVEN_REPOSITORY, 0o755, 0)?);
    // Appended, so that no distribution hides a module of the interpreter's own library. Versions of the mutator name a
    // flag without effect that Python has dropped. Programs iterate over sets, so their order is fixed.
    sources.push(text(
        "usr/bin/mutate",
        0o755,
        "#!/usr/bin/env -S PYTHONHASHSEED=0 /usr/bin/python3\n\
         import re\n\
         import sys\n\
         if not hasattr(re, \"T\"):\n    re.T = re.RegexFlag(0)\n\
         sys.path.append(\"/opt/python\")\n\
         from universalmutator.genmutants import main\n\
         sys.exit(main())\n",
    )?);
    Ok(LayerRecipe { kind: LayerKind::Tools, sources })
}

fn tool_source(tool: &ToolFile) -> Result<Source, ImageError> {
    let file_name = tool.path.rsplit('/').next().unwrap_or(&tool.path).to_owned();
    let blob =
        |path: &str| Ok::<_, ImageError>(Source::Blob { path: tree_path(path)?, digest: tool.sha256, size: tool.size });
    match tool.role {
        ToolRole::Maven => Ok(Source::Tarball { name: file_name, digest: tool.sha256, into: tree_path("opt/maven")? }),
        ToolRole::JunitConsole => blob("opt/junit/console.jar"),
        ToolRole::Junit6Console => blob("opt/junit6/console.jar"),
        ToolRole::JacocoAgent => blob("opt/jacoco/agent.jar"),
        ToolRole::JacocoCli => blob("opt/jacoco/cli.jar"),
        ToolRole::Python => {
            Ok(Source::PythonDistribution { name: file_name, digest: tool.sha256, into: tree_path("opt/python")? })
        }
    }
}

fn maven_cache_layer(lock: &RepositoryLock) -> Result<LayerRecipe, ImageError> {
    let mut sources = Vec::with_capacity(lock.files.len() + lock.metadata.len());
    for file in &lock.files {
        let path = tree_path(&format!("{MAVEN_REPOSITORY}/{}", file.path))?;
        sources.push(Source::Blob { path, digest: file.sha256, size: file.size });
    }
    for metadata in &lock.metadata {
        let path = tree_path(&format!("{MAVEN_REPOSITORY}/{}", metadata.path))?;
        sources.push(Source::Text { path, mode: 0o644, content: metadata.content.clone() });
    }
    for jar in &lock.extension_jars {
        let path = tree_path(&format!("{}/{}.jar", extension_directory(lock.jdk)?, jar.sha256.hex()))?;
        sources.push(Source::Blob { path, digest: jar.sha256, size: jar.size });
    }
    sources.sort_by(|left, right| path_of(left).cmp(&path_of(right)));
    Ok(LayerRecipe { kind: LayerKind::MavenCache, sources })
}

fn agent_layer(toolchain: &ToolchainLock, jdk: u32) -> Result<LayerRecipe, ImageError> {
    // The development kit may bring packages of its own suite, which the tools then use.
    let of_kit = toolchain.jdks.iter().find(|kit| kit.major == jdk);
    let there = |package: &DebianPackage| {
        of_kit.is_some_and(|kit| kit.packages.iter().any(|of_kit| of_kit.name == package.name))
    };
    let own: Vec<DebianPackage> = toolchain.agent_packages.iter().filter(|package| !there(package)).cloned().collect();
    let mut sources = packages(&own)?;
    for (name, target) in [("awk", "mawk"), ("nawk", "mawk"), ("pager", "less")] {
        let path = tree_path(&format!("usr/bin/{name}"))?;
        sources.push(Source::Alternative { path, target: target.to_owned() });
    }
    // Projects are often mounted from the host, where they belong to another user.
    sources.push(text("etc/gitconfig", 0o644, AGENT_GIT_CONFIGURATION)?);
    Ok(LayerRecipe { kind: LayerKind::Agent, sources })
}

fn path_of(source: &Source) -> Option<&TreePath> {
    match source {
        Source::Blob { path, .. }
        | Source::Directory { path, .. }
        | Source::Text { path, .. }
        | Source::Symlink { path, .. }
        | Source::Alternative { path, .. } => Some(path),
        Source::Package(_) | Source::Tarball { .. } | Source::PythonDistribution { .. } | Source::TrustStores => None,
    }
}

/// Returns the packages sorted by name, with `base-files` first, because the first package decides the modes of shared
/// directories.
fn packages(locked: &[DebianPackage]) -> Result<Vec<Source>, ImageError> {
    let mut packages = Vec::new();
    for package in locked {
        let DebianPackage { name, version, architecture, sha256, size, .. } = package;
        let sound = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.~:".contains(&byte))
                && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        };
        if ![name, version, architecture].into_iter().all(|text| sound(text)) {
            let reason = format!("package `{}` has no sound name, version or architecture", name.escape_debug());
            return Err(ImageError::Lock { reason });
        }
        packages.push(Package {
            name: name.clone(),
            version: version.clone(),
            architecture: architecture.clone(),
            digest: *sha256,
            size: *size,
        });
    }
    packages
        .sort_by(|left, right| (left.name != "base-files", &left.name).cmp(&(right.name != "base-files", &right.name)));
    Ok(packages.into_iter().map(Source::Package).collect())
}

fn tree_path(text: &str) -> Result<TreePath, ImageError> {
    text.parse().map_err(|error: super::path::InvalidTreePath| ImageError::Lock { reason: error.to_string() })
}

fn symlink(path: &str, target: &str) -> Result<Source, ImageError> {
    Ok(Source::Symlink { path: tree_path(path)?, target: target.to_owned() })
}

fn directory_of(path: &str, mode: u32, owner: u32) -> Result<Source, ImageError> {
    Ok(Source::Directory { path: tree_path(path)?, mode, owner })
}

fn text(path: &str, mode: u32, content: &str) -> Result<Source, ImageError> {
    Ok(Source::Text { path: tree_path(path)?, mode, content: content.to_owned() })
}
