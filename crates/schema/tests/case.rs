//! Case conversion: the table of 02 §8.2, and agreement with the crate version that defines it.

use convert_case::{Case, Casing};
use lightcone_schema::case::{to_camel, to_pascal, to_snake};
use proptest::prelude::*;

#[test]
fn table() {
    let rows = [
        ("countFresh", "count_fresh", "countFresh", "CountFresh"),
        ("player2", "player_2", "player2", "Player2"),
        ("u8", "u_8", "u8", "U8"),
        ("playerV2", "player_v_2", "playerV2", "PlayerV2"),
        ("pos_1x", "pos_1_x", "pos1X", "Pos1X"),
        (
            "XMLHttpRequest",
            "xml_http_request",
            "xmlHttpRequest",
            "XmlHttpRequest",
        ),
        (
            "HTTPServer2Go",
            "http_server_2_go",
            "httpServer2Go",
            "HttpServer2Go",
        ),
        ("userIDs", "user_i_ds", "userIDs", "UserIDs"),
        ("iOSApp", "i_os_app", "iOsApp", "IOsApp"),
        ("ABC", "abc", "abc", "Abc"),
        ("_private", "private", "private", "Private"),
        ("__x__", "x", "x", "X"),
        ("a__b", "a_b", "aB", "AB"),
        ("UPPER_SNAKE", "upper_snake", "upperSnake", "UpperSnake"),
        ("Straße", "straße", "straße", "Straße"),
        ("用户Name", "用户name", "用户name", "用户name"),
        ("_", "", "", ""),
    ];
    for (input, snake, camel, pascal) in rows {
        assert_eq!(to_snake(input), snake, "snake of {input}");
        assert_eq!(to_camel(input), camel, "camel of {input}");
        assert_eq!(to_pascal(input), pascal, "pascal of {input}");
    }
}

fn agree(name: &str) {
    assert_eq!(
        to_snake(name),
        name.to_case(Case::Snake),
        "snake of {name:?}"
    );
    assert_eq!(
        to_camel(name),
        name.to_case(Case::Camel),
        "camel of {name:?}"
    );
    assert_eq!(
        to_pascal(name),
        name.to_case(Case::Pascal),
        "pascal of {name:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn agrees_on_ascii(name in "[a-cA-C0-2_ -]{0,12}") {
        agree(&name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn agrees_on_any_text(name in "([a-bA-B0-9_]|[ßéÉǅΣσςİı用\u{301}\u{200d}٣]|\\PC){0,10}") {
        agree(&name);
    }
}
