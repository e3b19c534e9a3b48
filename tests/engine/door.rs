//! Online steps: the one way out is the host's socket.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use testevo_sandbox::engine::spec::Step;

use super::support::*;

on_every_engine!(connections_to_loopback_reach_the_hosts_socket_and_nothing_else_does);

async fn connections_to_loopback_reach_the_hosts_socket_and_nothing_else_does() {
    let outside = directory();
    let socket = outside.path().join("door.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs_err::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    // Answers each connection with as many bytes as it was sent, times a thousand, at the end of its request.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut request = Vec::new();
                stream.read_to_end(&mut request).unwrap();
                for byte in request {
                    stream.write_all(&vec![byte; 10_000]).unwrap();
                }
            });
        }
    });
    let image = loaded_image(&*engine().await).await;
    let mut steps = vec![
        step(&["get", "127.0.0.1:8099", &"a".repeat(2000)]),
        step(&["get-many", "127.0.0.1:8099", "20"]),
        step(&["late-writer", "/work/late"]),
        step(&["get", "127.0.0.1:8099", "end"]),
        step(&["reach-out"]),
    ];
    steps.push(Step::SendFile { path: "/work/late".into(), max_bytes: 1 });
    let mut spec = spec(image, steps);
    spec.program.door_port = Some(8099);
    spec.door = Some(socket);
    let run = finish(&spec).await;
    assert_eq!(run.stdout(0), "20000000 bytes, last Some('a')\n");
    assert_eq!(run.stdout(1), "20 of 20 whole\n");
    assert_eq!(run.end(2).leftover_processes, 1, "the forwarder does not count");
    assert_eq!(run.stdout(3), "30000 bytes, last Some('d')\n");
    assert!(run.stdout(4).starts_with("tcp: NetworkUnreachable"), "{}", run.stdout(4));
}
