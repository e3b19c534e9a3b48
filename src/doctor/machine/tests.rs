use super::super::Status;
use super::*;

#[test]
fn other_platforms_fail() {
    assert_eq!(platform_of("Linux", "6.1", "x86_64").status, Status::Ok);
    assert_eq!(platform_of("Linux", "6.1", "aarch64").status, Status::Fail);
    assert_eq!(platform_of("FreeBSD", "14", "x86_64").status, Status::Fail);
}

#[test]
fn a_clock_is_judged_by_the_programs_age_and_by_an_origin() {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let check = |now: Timestamp, origin: Option<&str>| clock(now, origin.map(|text| text.parse().unwrap())).status;
    assert_eq!(check(now, None), Status::Ok);
    assert_eq!(check(now, Some("2026-03-01T12:01:00Z")), Status::Ok);
    assert_eq!(check(now, Some("2026-03-01T13:00:00Z")), Status::Warn);
    assert_eq!(check("1970-01-02T00:00:00Z".parse().unwrap(), None), Status::Fail);
}

#[test]
fn resources_and_disk_have_thresholds() {
    let gib = 1 << 30;
    let enough = 2 * MEMORY_PER_JOB;
    assert_eq!(resources_of(2, Some(enough - enough / 16), None, 2).status, Status::Ok, "nominally enough");
    assert_eq!(resources_of(2, Some(enough / 2), None, 2).status, Status::Warn);
    assert_eq!(resources_of(2, None, None, 2).status, Status::Ok);
    assert_eq!(disk_of("x", "d", gib).status, Status::Fail);
    assert_eq!(disk_of("x", "d", 10 * gib).status, Status::Warn);
    assert_eq!(disk_of("x", "d", 100 * gib).status, Status::Ok);
}

#[test]
fn variables_are_named_and_never_shown() {
    let variables = |name: &str| match name {
        "HTTPS_PROXY" => Some("http://user:secret@proxy:3128".to_owned()),
        "http_proxy" => Some("proxy:3128".to_owned()),
        "SSL_CERT_FILE" => Some("/nowhere/ca.pem".to_owned()),
        _ => None,
    };
    let checks = network(&variables, 3);
    assert_eq!(checks[0].detail, "set: http_proxy, HTTPS_PROXY");
    assert_eq!(checks[1].detail, "3 trusted certificates, by SSL_CERT_FILE; SSL_CERT_FILE leads nowhere");
    assert!(!format!("{checks:?}").contains("secret"));
    let wrong = network(&|name| (name == "ALL_PROXY").then(|| "http://".to_owned()), 0);
    assert_eq!((wrong[0].status, wrong[1].status), (Status::Warn, Status::Warn));
}
