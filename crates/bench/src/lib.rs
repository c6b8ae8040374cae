//! What `ringfold bench`, `tune` and `probe` are made of: [`measure`] and [`probe`].
//!
//! The interface may change with each version.

#![cfg(target_os = "linux")]

pub mod noise;
pub mod probe;

pub mod measure;
