//! Layers composed from packages and jars: unpacked, merged, sorted, hashed, compressed and stored.

use std::hint::black_box;
use std::io::Write as _;

use criterion::{BatchSize, Criterion, Throughput};
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::image::compose_recipe;
use testevo_sandbox::image::recipe::{ImageRecipe, LayerRecipe, Package, Source};
use testevo_sandbox::lock::LayerKind;

use crate::Numbers;

pub(crate) fn benches(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let mut numbers = Numbers(1);
    // Some three quarters of what the real base has, and a tenth of the bytes of a development kit.
    let base: Vec<Source> = (0..40).map(|number| package(&store, &mut numbers, number, 40, 6 << 10)).collect();
    let kit = vec![package(&store, &mut numbers, 100, 400, 32 << 10)];
    let cache: Vec<Source> = (0..400).map(|number| jar(&store, &mut numbers, number)).collect();
    let layer = |kind, sources: &[Source]| LayerRecipe { kind, sources: sources.to_vec() };
    let recipe = |layers| ImageRecipe { jdk: 17, repository: None, layers };
    let toolchain = recipe(vec![layer(LayerKind::Base, &base), layer(LayerKind::Jdk, &kit)]);
    let maven = recipe(vec![layer(LayerKind::MavenCache, &cache)]);
    let mut group = criterion.benchmark_group("image");
    group.sample_size(10);
    for (name, recipe, threads) in [
        ("41 packages, 2,000 files, 22 MiB, 1 thread", &toolchain, 1),
        ("41 packages, 2,000 files, 22 MiB, 2 threads", &toolchain, 2),
        ("400 jars, 27 MiB, 1 thread", &maven, 1),
    ] {
        let composed = compose_recipe(recipe, &store, threads).unwrap();
        group.throughput(Throughput::Bytes(composed.layers.iter().map(|layer| layer.uncompressed_size).sum()));
        // Finished layers are remembered by their recipes.
        let forget = || fs_err::remove_dir_all(store.root().join("layers")).unwrap();
        group.bench_function(name, |bencher| {
            let compose = |()| compose_recipe(black_box(recipe), &store, threads).unwrap();
            bencher.iter_batched(forget, compose, BatchSize::PerIteration);
        });
    }
    // What every command does for an image that is there.
    compose_recipe(&toolchain, &store, 2).unwrap();
    group.throughput(Throughput::Elements(toolchain.layers.len() as u64));
    group.bench_function("2 remembered layers of 41 packages", |bencher| {
        bencher.iter(|| compose_recipe(black_box(&toolchain), &store, 1).unwrap());
    });
    group.finish();
}

fn jar(store: &Store, numbers: &mut Numbers, number: usize) -> Source {
    let length = (8 << 10) + numbers.below(120 << 10);
    let bytes = numbers.bytes(length);
    Source::Blob {
        path: format!("opt/maven-repository/org/example/group{}/artifact{number}/1.{number}/a.jar", number % 60)
            .parse()
            .unwrap(),
        digest: store.put(&bytes).unwrap(),
        size: bytes.len() as u64,
    }
}

fn package(store: &Store, numbers: &mut Numbers, number: usize, files: usize, bytes: usize) -> Source {
    let mut data = tar::Builder::new(Vec::new());
    for file in 0..files {
        let length = bytes / 2 + numbers.below(bytes);
        let content = numbers.text(length);
        let path = format!("./usr/lib/package{number}/directory{}/file{file}.so", file % 12);
        data.append_data(&mut header(content.len()), path, content.as_slice()).unwrap();
    }
    let mut control = tar::Builder::new(Vec::new());
    let fields = format!("Package: package{number}\nVersion: 1.0-1\nArchitecture: amd64\n");
    control.append_data(&mut header(fields.len()), "control", fields.as_bytes()).unwrap();
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.xz", xz(&control.into_inner().unwrap())),
        ("data.tar.xz", xz(&data.into_inner().unwrap())),
    ] {
        let length = content.len();
        archive.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, 0, 100_644).bytes());
        archive.extend(content);
        archive.extend(std::iter::repeat_n(b'\n', length % 2));
    }
    Source::Package(Package {
        name: format!("package{number}"),
        version: "1.0-1".to_owned(),
        architecture: "amd64".to_owned(),
        digest: store.put(&archive).unwrap(),
        size: archive.len() as u64,
    })
}

fn header(length: usize) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(1_700_000_000);
    header.set_size(length as u64);
    header
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
