//! The catalogue: what goes wrong with storage, kernel, limits and data, and the tests that provoke
//! it for real. And the summary that `make test` prints at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::probe::SKIPS;

/// Set where ignored tests were run too.
const ALL: &str = "RINGFOLD_ALL";

/// Whether tests take all of their cases, however long that takes.
pub fn are_all_wanted() -> bool {
    std::env::var_os(ALL).is_some()
}

/// How many cases a test draws at random: all of them where tests take all of their cases.
pub fn drawn(some: u32, all: u32) -> u32 {
    if are_all_wanted() { all } else { some }
}

/// What `make test-all` leaves out by its `--skip`s: what `make soak` runs, and tests that are but
/// children of others.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "grid::allocations_in_a_child",
        "a part of no_row_of_an_answer_costs_an_allocation",
    ),
    (
        "liveness::a_thousand_kills_at_random_moments_leave_no_file_behind",
        "left to make soak",
    ),
    (
        "liveness::the_library_in_a_child",
        "a part of the_library_returns_without_the_read_where_a_ring_reads",
    ),
    ("memory_soak::random_shapes", "left to make soak"),
    (
        "quote::allocations_in_a_child",
        "a part of no_block_costs_an_allocation",
    ),
    ("soak::soak", "left to make soak"),
    ("soak::the_library_over_and_over", "a part of soak::soak"),
];

/// What goes wrong, and who provokes it.
const ROWS: &[(&str, &[&str])] = &[
    (
        "io_uring blocked at setup, enter or register: seccomp, sysctl, containers",
        &[
            "faults::without_io_uring_auto_falls_back_with_one_notice",
            "faults::without_io_uring_cold_files_are_read_all_the_same",
            "faults::there_is_one_notice_however_the_input_is_put_together",
            "faults::the_ring_that_was_asked_for_is_never_given_up",
            "knobs::a_knob_of_a_ring_that_is_blocked",
            "limits::calls_that_a_container_lacks",
            "limits::io_uring_disabled_by_sysctl",
            "limits::io_uring_disabled_by_sysctl_for_real",
        ],
    ),
    (
        "io_uring_enter fails after the ring was set up",
        &[
            "injected::a_submission_that_fails_now_and_then_is_made_again",
            "liveness::a_ring_whose_calls_all_fail_ends_at_the_limit",
            "uring_raw::calls_that_fail_for_good_end_the_run_and_passing_failures_do_not",
        ],
    ),
    (
        "drives with poll queues, several drives, several NUMA nodes",
        &["emulated::drives_with_poll_queues_and_numa_nodes"],
    ),
    (
        "flags unknown to an old kernel",
        &[
            "knobs::what_other_kernels_refuse_is_named",
            "old_kernels::old_kernels_give_the_answer_or_name_what_they_lack",
        ],
    ),
    (
        "the limit on locked memory",
        &[
            "faults::the_ring_works_with_little_locked_memory",
            "faults::the_ring_without_any_locked_memory_works_or_says_why_not",
            "knobs::buffers_that_may_not_be_locked",
        ],
    ),
    (
        "runs of an ordinary user, back to back and eight at once",
        &[
            "limits::a_hundred_runs_and_eight_at_once_with_64_kib_of_locked_memory",
            "limits::a_hundred_runs_and_eight_at_once_with_8_mib_of_locked_memory",
        ],
    ),
    (
        "limits on descriptors, processes and threads; many files",
        &[
            "faults::a_limit_on_processes_is_told_or_lived_with",
            "many_files::a_thousand_files",
            "many_files::every_job_opens_files_in_turn",
            "limits::few_descriptors_give_the_answer_or_a_line",
            "limits::little_address_space_gives_the_answer_or_a_line",
            "limits::few_processes_in_the_control_group",
            "uring_raw::too_few_descriptors_are_told",
        ],
    ),
    (
        "EINTR, EAGAIN and other errnos of system calls",
        &[
            "injected::calls_that_fail_end_in_the_answer_or_one_line",
            "injected::every_call_that_fails_ends_in_the_answer_or_one_line",
            "sweep::a_ring_waits_for_storage_that_is_busy",
            "sweep::the_nth_read_fails_in_every_way_under_every_engine",
            "sweep::the_program_answers_or_says_in_one_line_why_not",
        ],
    ),
    (
        "short reads",
        &[
            "storage::corrupt_data_on_btrfs_is_told_with_its_bytes_by_every_engine",
            "sweep::the_nth_read_fails_in_every_way_under_every_engine",
            "sweep::the_program_answers_or_says_in_one_line_why_not",
        ],
    ),
    (
        "a file truncated while it is read",
        &[
            "changing::a_file_that_anything_happens_to_all_the_time_ends_every_run_in_order",
            "changing::a_file_truncated_at_any_read_is_told_with_both_lengths",
            "changing::a_real_file_truncated_before_it_is_read_is_told_with_both_lengths",
            "library::a_file_that_was_truncated_after_it_was_opened",
        ],
    ),
    (
        "a file that is rewritten in place while it is read",
        &[
            "changing::a_byte_written_to_a_real_file_is_told_but_not_one_written_before",
            "changing::a_file_that_anything_happens_to_all_the_time_ends_every_run_in_order",
            "changing::a_file_that_is_rewritten_at_any_read_ends_the_run_in_order",
            "changing::a_file_that_is_written_all_the_time_with_valid_rows_has_an_answer",
            "changing::a_real_file_that_is_rewritten_in_place_is_read_as_it_is_then",
        ],
    ),
    (
        "a file that grows or is replaced while it is read",
        &[
            "changing::a_file_that_grows_at_any_read_is_read_up_to_the_length_it_had",
            "changing::a_real_file_that_grows_before_it_is_read_is_read_up_to_the_length_it_had",
            "changing::a_real_file_that_is_replaced_or_removed_is_read_as_it_was_opened",
            "library::a_file_that_has_grown_is_read_up_to_its_size_when_opened",
            "library::a_file_that_was_removed_or_replaced_after_it_was_opened",
        ],
    ),
    (
        "a bad sector",
        &[
            "storage::a_bad_sector_is_told_with_its_bytes_by_every_engine",
            "storage::corrupt_data_on_btrfs_is_told_with_its_bytes_by_every_engine",
            "sweep::the_nth_read_fails_in_every_way_under_every_engine",
            "sweep::the_program_answers_or_says_in_one_line_why_not",
        ],
    ),
    (
        "storage that hangs or takes its time",
        &[
            "liveness::a_read_that_not_even_a_kill_ends_keeps_nobody_waiting",
            "liveness::after_half_a_minute_of_silence_there_is_one_notice",
            "liveness::only_the_time_of_one_read_counts",
            "liveness::silence_is_told_of_with_file_and_bytes_again_and_again",
            "liveness::storage_that_answers_before_the_limit_gives_the_answer",
            "liveness::storage_that_hangs_ends_the_run_at_the_limit",
            "liveness::the_library_returns_without_the_read_where_a_ring_reads",
        ],
    ),
    (
        "O_DIRECT misaligned",
        &[
            "storage::reads_are_aligned_to_sectors_of_4_kib",
            "usage::a_block_size_that_direct_reads_cannot_have",
        ],
    ),
    (
        "O_DIRECT or RWF_DONTCACHE refused",
        &[
            "faults::direct_reads_in_memory_work_or_say_why_not",
            "knobs::a_file_system_that_refuses_dontcache",
            "knobs::auto_leaves_nothing_where_o_direct_is_refused",
            "storage::o_direct_refused_is_a_fallback_a_file_at_a_time",
            "storage::what_file_systems_refuse_is_told_by_name",
        ],
    ),
    (
        "a directory, a missing or unreadable file",
        &[
            "faults::a_missing_file_a_directory_and_a_file_for_a_directory",
            "faults::an_unreadable_file",
        ],
    ),
    (
        "pipe, FIFO, standard input, procfs, character device",
        &[
            "answers::a_fifo",
            "answers::a_pipe_that_brings_a_byte_at_a_time",
            "answers::files_of_procfs_have_no_size",
            "answers::standard_input_as_a_pipe",
            "answers::standard_input_as_a_file_from_where_it_stands",
            "edges::a_pipe_that_does_not_block_is_waited_for",
        ],
    ),
    (
        "a block device",
        &["storage::a_block_device_is_read_to_its_end"],
    ),
    (
        "empty, sparse and huge files",
        &[
            "answers::empty_files_are_fine_past_the_page_cache_too",
            "sparse::holes_are_counted_as_if_they_were_read",
            "sparse::more_blocks_than_32_bits_can_number",
        ],
    ),
    (
        "a record longer than the limit",
        &[
            "edges::a_record_goes_on_past_what_is_cached",
            "hard::the_default_limit_is_a_mebibyte",
            "hard::the_limit_on_records_is_exact",
        ],
    ),
    (
        "newlines at a block's edge, none at all, CRLF, NUL, bad UTF-8, BOM",
        &[
            "answers::any_files_in_any_way",
            "answers::samples_at_any_block_size",
            "hard::a_file_without_any_newline",
            "hard::a_newline_at_an_edge_and_a_byte_either_side",
        ],
    ),
    (
        "a malformed record",
        &[
            "answers::any_broken_files_in_any_way",
            "malformed::an_input_of_another_kind_gets_a_hint",
            "malformed::every_kind_at_any_place_is_told_alike_by_every_engine",
            "malformed::of_several_the_lowest_is_told",
        ],
    ),
    (
        "little memory",
        &[
            "faults::a_limit_on_memory_is_told",
            "limits::a_run_fits_itself_into_the_control_group",
            "limits::little_memory_in_the_control_group",
        ],
    ),
    (
        "millions of keys",
        &[
            "memory::any_budget_gives_the_same_answer",
            "memory::any_kind_of_key_and_number_is_spilled",
            "memory::millions_of_keys_under_a_control_group",
            "memory::no_room_to_spill_is_told",
            "memory::spilled_keys_that_are_gone_are_told",
        ],
    ),
    (
        "standard output closed or full; an output file that can't be written",
        &[
            "faults::a_closed_standard_output_is_a_quiet_end",
            "faults::a_full_device",
            "faults::an_output_file_that_grows_too_large_never_appears",
            "faults::streams_that_were_closed_from_the_start_are_told",
            "injected::an_output_file_that_can_not_be_written_is_told",
        ],
    ),
    (
        "SIGINT, SIGTERM, SIGKILL",
        &[
            "faults::a_killed_run_leaves_no_output_file",
            "faults::signals_at_any_time_leave_no_wrong_answer",
            "faults::signals_end_a_run_that_waits_for_its_input",
            "liveness::a_signal_that_was_ignored_from_the_start_stays_so",
            "liveness::a_thousand_kills_at_random_moments_leave_no_file_behind",
            "liveness::kills_at_random_moments_leave_no_file_behind",
            "liveness::signals_end_a_run_in_every_stage",
            "liveness::signals_end_a_run_that_has_spilled_keys",
            "liveness::signals_end_a_run_whose_output_is_stuck",
            "liveness::signals_end_a_run_whose_storage_hangs",
        ],
    ),
    (
        "a worker panics",
        &[
            "library::a_job_that_panics_is_an_error_and_the_process_goes_on",
            "uring_raw::a_panic_on_any_ring_is_an_error_and_the_next_run_works",
        ],
    ),
];

/// The names of the tests in this program.
fn tests(flags: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.arg("--list").args(flags).output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_string).collect()
}

#[test]
fn every_row_names_tests_that_there_are() {
    let tests = tests(&[]);
    for (row, provoked_by) in ROWS {
        assert!(!provoked_by.is_empty(), "{row}");
        for name in *provoked_by {
            assert!(tests.contains(*name), "{row}: no test is called {name}");
        }
    }
}

/// What `make test-all` leaves out is in the list, and nothing else, so that the summary tells it.
#[test]
fn test_all_leaves_out_what_is_run_elsewhere() {
    let makefile = include_str!("../Makefile");
    let rule = makefile.split("\ntest-all:").nth(1).unwrap();
    let rule = rule.split("\n\n").next().unwrap();
    // What is run alone, by another line.
    let alone = ["catalogue::summary", "_for_real"];
    let skips: Vec<_> = rule
        .split("--skip ")
        .skip(1)
        .filter_map(|rest| rest.split([' ', ';']).next())
        .filter(|name| !alone.contains(name))
        .collect();
    let ignored = tests(&["--ignored"]);
    let left_out = ignored.iter().filter(|name| left_out_by(&skips, name));
    let left_out: Vec<_> = left_out.collect();
    let elsewhere: Vec<_> = ELSEWHERE.iter().map(|(name, _)| *name).collect();
    assert_eq!(left_out, elsewhere);
    let others = tests(&[]);
    let wrong = others
        .difference(&ignored)
        .find(|name| left_out_by(&skips, name));
    assert_eq!(wrong, None, "it isn't run at all");
}

fn left_out_by(skips: &[&str], name: &str) -> bool {
    skips.iter().any(|skip| name.contains(skip))
}

/// Why tests didn't run, by their names without the module.
fn reasons() -> BTreeMap<String, String> {
    let path = std::env::var_os(SKIPS).expect("make test names the file of what was skipped");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines
        .map(|(test, reason)| (test.to_string(), reason.to_string()))
        .collect()
}

#[test]
#[ignore = "it isn't a test: make test prints it at its end"]
fn summary() {
    let (tests, reasons) = (tests(&[]), reasons());
    let mut left = BTreeSet::new();
    if !are_all_wanted() {
        left = self::tests(&["--ignored"]);
    }
    let here = "catalogue::summary";
    left.remove(here);
    let why_not = |test: &str| {
        let name = test.rsplit("::").next().unwrap_or(test);
        let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == test);
        match elsewhere {
            Some((_, why)) => Some(*why),
            None if left.contains(test) => Some("left to make test-all"),
            None => reasons.get(name).map(String::as_str),
        }
    };
    let tests: Vec<_> = tests.iter().filter(|test| *test != here).collect();
    let not: Vec<_> = tests
        .iter()
        .filter_map(|test| Some((test, why_not(test)?)))
        .collect();
    println!(
        "\nlinux-tests: {} ran, {} didn't:",
        tests.len() - not.len(),
        not.len()
    );
    for (test, why) in not {
        println!("  {test}: {why}");
    }
    let ran = |row: &&(&str, &[&str])| row.1.iter().any(|test| why_not(test).is_none());
    let (done, missed): (Vec<_>, Vec<_>) = ROWS.iter().partition(ran);
    println!(
        "catalogue of faults: {} of {} rows provoked",
        done.len(),
        ROWS.len()
    );
    for (row, _) in &missed {
        println!("  not provoked: {row}");
    }
    assert!(
        !done.is_empty(),
        "a run that provoked nothing shows nothing"
    );
}
