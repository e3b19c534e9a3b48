//! Images as archives and as contexts of builds.

use super::*;

#[test]
fn an_archive_can_leave_out_layers_and_a_context_holds_them_all() {
    let (directory, _, store) = world();
    let image = compose_recipe(&recipe(&store), &store, 2).unwrap();
    let names = |bytes: &[u8]| {
        let mut archive = tar::Archive::new(bytes);
        let members = archive.entries().unwrap().map(|member| member.unwrap().path().unwrap().display().to_string());
        members.collect::<Vec<_>>()
    };
    let mut whole = Vec::new();
    write_image_archive(&image, &store, &[], &mut whole).unwrap();
    let mut part = Vec::new();
    let present = [image.layers[0].diff_id].into();
    write_image_archive_without(&image, &store, &[], &present, &mut part).unwrap();
    assert_eq!((names(&whole).len(), names(&part).len()), (11, 10));
    assert!(!names(&part).iter().any(|name| name.contains(&image.layers[0].digest.hex())));

    let context = directory.path().join("context");
    export_context(&image, 8, &store, &context).unwrap();
    assert_eq!(Digest::of(&fs::read(context.join("layers/jdk.tar.gz")).unwrap()), image.layers[1].digest);
    assert!(fs::read_to_string(context.join("Dockerfile")).unwrap().contains("ADD layers/maven-cache.tar.gz /\n"));
    assert!(export_context(&image, 8, &store, &context).is_err());
}
