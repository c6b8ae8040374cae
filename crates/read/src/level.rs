//! Which vector instructions the processor has, and so which version of each kernel runs.
//!
//! Invariant of this module: a token is only made where the processor has its features.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// The instruction sets that the kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 64-bit words, any processor.
    Portable,
    /// x86-64 with AVX2, AES, BMI and carry-less multiplication.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// x86-64 with AVX-512 up to VBMI2, and vector AES.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Level {
    /// The best level of this processor.
    #[inline]
    pub fn detect() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        let best = || *Self::available().last().expect("portable is always there");
        *BEST.get_or_init(best)
    }

    /// Every level this processor can run, the best last.
    pub fn available() -> Vec<Self> {
        let levels = [Some(Level::Portable)].into_iter();
        #[cfg(target_arch = "x86_64")]
        let levels = levels.chain([
            Avx2::detect().map(Level::Avx2),
            Avx512::detect().map(Level::Avx512),
        ]);
        levels.flatten().collect()
    }
}

/// A token: its values prove that the processor has the features.
#[cfg(target_arch = "x86_64")]
macro_rules! token {
    ($(#[$doc:meta])* $token:ident: $($feature:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $token(());

        impl $token {
            fn detect() -> Option<Self> {
                let has_all = true $(&& is_x86_feature_detected!($feature))*;
                has_all.then_some($token(()))
            }

            /// Runs `kernel` with the features. What it calls must be inlined into it.
            #[inline(always)]
            pub fn vectorize<R>(self, kernel: impl FnOnce() -> R) -> R {
                #[target_feature($(enable = $feature),*)]
                fn with_features<R>(kernel: impl FnOnce() -> R) -> R {
                    kernel()
                }
                // SAFETY: by the module's invariant.
                unsafe { with_features(kernel) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
token! {
    /// The processor has what [`Level::Avx2`] names.
    Avx2: "avx2" "aes" "bmi1" "bmi2" "pclmulqdq" "popcnt"
}

#[cfg(target_arch = "x86_64")]
token! {
    /// The processor has what [`Level::Avx512`] names.
    Avx512: "avx2" "aes" "bmi1" "bmi2" "pclmulqdq" "popcnt"
        "avx512f" "avx512bw" "avx512vl" "avx512cd" "avx512dq" "avx512vbmi" "avx512vbmi2" "vaes"
}
