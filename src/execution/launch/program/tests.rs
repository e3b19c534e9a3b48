use super::*;

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
