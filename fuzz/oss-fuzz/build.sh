#!/bin/bash -eu
# Builds all fuzz targets as OSS-Fuzz expects them: in $OUT each program, its seeds and its dictionary. The image is OSS-Fuzz's
# base builder for Rust, with the packages cmake and zip, this repository under $SRC/ringfold, and this file as $SRC/build.sh.
cd "$SRC/ringfold"
cargo fuzz build -O --debug-assertions
for seeds in fuzz/corpus/*/; do
  target=$(basename "$seeds")
  cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
  zip -jqr "$OUT/${target}_seed_corpus.zip" "$seeds"
  cp fuzz/words.dict "$OUT/$target.dict"
done
