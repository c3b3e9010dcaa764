#[test]
fn there() {
    assert!(rusqlite::version().len() > 0);
}
