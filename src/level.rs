//! Which vector instructions the processor has, and so which version of each kernel runs.

use std::sync::OnceLock;

/// The instruction sets that the kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 64-bit words, any processor.
    Portable,
    /// x86-64 with AVX2, AES, BMI and carry-less multiplication.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512 up to VBMI2, and vector AES.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best level of this processor.
    pub fn detect() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        let best = || *Self::available().last().expect("portable is always there");
        *BEST.get_or_init(best)
    }

    /// Every level this processor can run, the best last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("aes")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("popcnt");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("vaes");
            if avx2 {
                levels.push(Level::Avx2);
            }
            if avx512 {
                levels.push(Level::Avx512);
            }
        }
        levels
    }
}
