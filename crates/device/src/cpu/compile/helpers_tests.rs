use super::*;

fn taken(ahead: &HelperQueue, count: usize) -> Vec<(u32, usize)> {
    (0..count).map_while(|_| ahead.next()).collect()
}

#[test]
fn what_the_guest_has_just_called_comes_first_and_tables_last() {
    let ahead = HelperQueue::new(20);
    assert!(ahead.start(|| vec![10, 11]) && !ahead.start(|| vec![12]));
    ahead.add([1, 2].into_iter(), 0);
    ahead.add([3].into_iter(), 1);
    ahead.add([4, 5].into_iter(), 0);
    assert_eq!(taken(&ahead, 7), [(4, 0), (5, 0), (1, 0), (2, 0), (3, 1), (10, DISTANCES), (11, DISTANCES)]);
}

#[test]
fn nobody_compiles_what_another_has_begun() {
    let ahead = HelperQueue::new(4);
    assert!(ahead.begin(1) && !ahead.begin(1));
    ahead.add([1, 2, 1, 2, 3].into_iter(), 0);
    assert_eq!(taken(&ahead, 2), [(2, 0), (3, 0)]);
    assert!(!ahead.begin(2) && !ahead.begin(4), "there is no function 4");
}

#[test]
fn the_oldest_are_forgotten_when_too_many_wait() {
    let ahead = HelperQueue::new(WAITING + 8);
    for function in 0..WAITING as u32 + 8 {
        ahead.add([function].into_iter(), 0);
    }
    let taken = taken(&ahead, WAITING);
    assert_eq!((taken[0], taken[WAITING - 1]), ((WAITING as u32 + 7, 0), (8, 0)));
}

#[test]
fn helpers_that_wait_leave_at_the_end() {
    let ahead = HelperQueue::new(1);
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| ahead.next());
        ahead.end();
        assert_eq!(helper.join().ok(), Some(None));
    });
    assert!(!ahead.start(Vec::new), "no helper is started afterwards");
}

#[test]
fn only_one_helper_has_a_large_function() {
    let ahead = HelperQueue::new(1);
    assert!(ahead.begin_large() && !ahead.begin_large());
    ahead.end_large();
    assert!(ahead.begin_large());
}
