use super::*;

#[test]
fn unknown_fields_are_ignored() {
    let text = br#"{"call":3,"new":1,"request":{"kind":"thaw","also_new":[]}}"#;
    assert_eq!(
        Call::parse(text).unwrap(),
        Call {
            call: 3,
            request: Request::Thaw {
                wall_clock_unix_nanos: None
            }
        }
    );
}

#[test]
fn unknown_request_is_refused_as_unsupported_with_its_call() {
    let text = br#"{"call":3,"request":{"kind":"teleport"}}"#;
    let Err(MessageError::Refused { call: 3, error }) = Call::parse(text) else {
        panic!("not refused");
    };
    assert_eq!(error.code, GuestErrorCode::Unsupported);
}

#[test]
fn malformed_request_is_refused_as_invalid_with_its_call() {
    let text = br#"{"call":4,"request":{"kind":"stat","path":7}}"#;
    let Err(MessageError::Refused { call: 4, error }) = Call::parse(text) else {
        panic!("not refused");
    };
    assert_eq!(error.code, GuestErrorCode::Invalid);
    assert!(matches!(
        Call::parse(b"[]"),
        Err(MessageError::Malformed(_))
    ));
}

#[test]
fn unknown_event_and_answer_are_told_from_garbage() {
    let event = br#"{"event":{"kind":"sneezed"}}"#;
    assert!(matches!(
        GuestMessage::parse(event),
        Err(MessageError::UnknownEvent)
    ));
    let answer = br#"{"answer":{"call":9,"result":{"ok":{"kind":"novel"}}}}"#;
    let parsed = GuestMessage::parse(answer);
    assert!(matches!(
        parsed,
        Err(MessageError::UnknownAnswer { call: 9 })
    ));
    let lie = br#"{"event":{"kind":"exec_exited"}}"#;
    assert!(matches!(
        GuestMessage::parse(lie),
        Err(MessageError::Malformed(_))
    ));
}

#[test]
fn unknown_words_become_unknown_and_not_a_failure() {
    let error: GuestError = serde_json::from_str(r#"{"code":"moon","message":"x"}"#).unwrap();
    assert_eq!(error.code, GuestErrorCode::Unknown);
}
