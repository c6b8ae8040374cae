//! Inputs for the benchmarks, made from fixed seeds.

/// A small generator of random numbers, the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }

    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn gauss(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Keys with the mean of their values.
pub type Keys = Vec<(String, f64)>;

/// The challenge's 413 stations.
pub fn stations() -> Keys {
    let list = include_str!("../src/generate/stations.txt");
    list.lines()
        .map(|line| {
            let (name, mean) = line.split_once(';').expect("name;mean");
            (name.to_string(), mean.parse().expect("a mean"))
        })
        .collect()
}

/// `count` names of 1 to 100 bytes, mostly short.
pub fn names(count: usize) -> Keys {
    let mut random = Random(1);
    let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ -éèüßñçøåπж日本"
        .chars()
        .collect();
    let mut seen = std::collections::HashSet::new();
    while seen.len() < count {
        let length = 1 + (99.0 * random.unit().powi(5)) as usize + random.below(4) as usize + 2;
        let mut name = String::new();
        while name.len() < length {
            name.push(letters[random.below(letters.len() as u64) as usize]);
        }
        while name.len() > 100 {
            name.pop();
        }
        seen.insert(name);
    }
    let mut names: Vec<String> = seen.into_iter().collect();
    names.sort();
    names
        .into_iter()
        .map(|name| (name, random.unit() * 60.0 - 20.0))
        .collect()
}

/// `count` keys of 40 to 90 bytes that begin alike.
pub fn prefixed(count: usize) -> Keys {
    let mut random = Random(2);
    (0..count)
        .map(|key| {
            let tail = random.below(51) as usize;
            (
                format!(
                    "https://www.example.com/section/{key:08x}{}",
                    "p".repeat(tail)
                ),
                10.0,
            )
        })
        .collect()
}

/// `count` short keys.
pub fn numbered(count: usize) -> Keys {
    (0..count as u64)
        .map(|key| {
            (
                format!("{:x}", key.wrapping_mul(0x9e37_79b9) & 0xffff_ffff),
                10.0,
            )
        })
        .collect()
}

/// `rows` lines over `keys`, each value as `value` writes it.
pub fn rows(keys: &Keys, rows: usize, end: &str, value: impl Fn(f64) -> String) -> Vec<u8> {
    let mut random = Random(3);
    let mut text = Vec::new();
    for _ in 0..rows {
        let (key, mean) = &keys[random.below(keys.len() as u64) as usize];
        text.extend_from_slice(key.as_bytes());
        text.push(b';');
        text.extend_from_slice(value((mean + 10.0 * random.gauss()).clamp(-99.9, 99.9)).as_bytes());
        text.extend_from_slice(end.as_bytes());
    }
    text
}

/// The challenge's values.
pub fn tenths(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".into() } else { text }
}
