//! Replays one seed with its whole trace: `SALTERN_SIM_SEED=7 cargo test -p saltern-sim --test replay -- --nocapture`.

#[test]
fn replay() {
    let seed = std::env::var("SALTERN_SIM_SEED").map_or(1, |seed| seed.parse().expect("SALTERN_SIM_SEED is a number"));
    match saltern_sim::run(seed, None) {
        Ok(report) => {
            report.trace.iter().for_each(|line| println!("{line}"));
            assert!(report.acknowledged > 0);
        }
        Err(failure) => {
            failure.trace.iter().for_each(|line| println!("{line}"));
            panic!("{failure}");
        }
    }
}
