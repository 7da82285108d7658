use super::*;

fn path(text: &str) -> EntryPath {
    EntryPath::parse(text.as_bytes()).unwrap()
}

fn entry(text: &str, kind: EntryKind) -> LayerEntry {
    let metadata = Metadata {
        mode: 0o644,
        ..Metadata::default()
    };
    LayerEntry {
        path: path(text),
        kind,
        metadata,
    }
}

fn file(text: &str) -> LayerEntry {
    entry(text, EntryKind::File(Content::default()))
}

fn directory(text: &str) -> LayerEntry {
    entry(text, EntryKind::Directory)
}

fn symlink(text: &str, target: &str) -> LayerEntry {
    entry(text, EntryKind::Symlink(target.as_bytes().to_vec()))
}

fn hard_link(text: &str, target: &str) -> LayerEntry {
    entry(text, EntryKind::HardLink(path(target)))
}

fn whiteout(text: &str) -> LayerEntry {
    entry(text, EntryKind::Whiteout)
}

/// Layers from the lowest; the names that are left.
fn applied(layers: Vec<Vec<LayerEntry>>) -> Result<Vec<String>, ApplyError> {
    let mut tree = Tree::default();
    for layer in layers {
        tree.apply(layer)?;
    }
    Ok(outline(&tree))
}

fn outline(tree: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = vec![(String::new(), tree.root())];
    while let Some((above, id)) = open.pop() {
        for (name, child) in tree.children(id).into_iter().flatten() {
            let path = format!("{above}/{}", String::from_utf8_lossy(name));
            lines.push(path.clone());
            open.push((path, *child));
        }
    }
    lines.sort();
    lines
}

#[test]
fn a_whiteout_speaks_of_the_layers_below_wherever_it_stands() {
    let below = vec![directory("a"), file("a/old"), file("a/both"), file("b")];
    let above = vec![
        file("a/both"),
        whiteout("a/both"),
        whiteout("a/old"),
        whiteout("c/none"),
    ];
    let left = applied(vec![below.clone(), above]).unwrap();
    assert_eq!(left, ["/a", "/a/both", "/b"]);
    let opaque = vec![file("a/new"), entry("a", EntryKind::Opaque)];
    assert_eq!(
        applied(vec![below, opaque]).unwrap(),
        ["/a", "/a/new", "/b"]
    );
}

#[test]
fn a_mark_in_a_directory_that_replaced_a_link_leaves_the_target_alone() {
    let below = vec![file("b/x"), symlink("a", "b")];
    let opaque = vec![directory("a"), entry("a", EntryKind::Opaque), file("a/f")];
    let left = applied(vec![below.clone(), opaque]).unwrap();
    assert_eq!(left, ["/a", "/a/f", "/b", "/b/x"]);
    let hidden = vec![directory("a"), whiteout("a/x"), file("a/f")];
    let left = applied(vec![below, hidden]).unwrap();
    assert_eq!(left, ["/a", "/a/f", "/b", "/b/x"]);
}

#[test]
fn a_whiteout_of_a_directory_leaves_what_its_layer_has_put_there() {
    let below = vec![file("d/old"), file("d/e/old")];
    let before = vec![file("d/e/new"), whiteout("d")];
    assert_eq!(
        applied(vec![below.clone(), before]).unwrap(),
        ["/d", "/d/e", "/d/e/new"]
    );
    let behind = vec![whiteout("d"), file("d/e/new")];
    assert_eq!(
        applied(vec![below, behind]).unwrap(),
        ["/d", "/d/e", "/d/e/new"]
    );
}

#[test]
fn a_directory_stays_and_anything_else_makes_room() {
    let below = vec![
        directory("a"),
        file("a/x"),
        file("b"),
        directory("c"),
        file("c/y"),
    ];
    let above = vec![directory("a"), directory("b"), file("b/z"), file("c")];
    let left = applied(vec![below, above]).unwrap();
    assert_eq!(left, ["/a", "/a/x", "/b", "/b/z", "/c"]);
}

#[test]
fn a_directory_over_a_directory_changes_its_owner() {
    let mut tree = Tree::default();
    tree.apply(vec![file("a/x")]).unwrap();
    let mut owned = directory("a");
    owned.metadata.uid = 7;
    tree.apply(vec![owned]).unwrap();
    let id = tree.child(tree.root(), b"a").unwrap();
    assert_eq!(tree.node(id).metadata.uid, 7);
    assert_eq!(outline(&tree), ["/a", "/a/x"]);
}

#[test]
fn links_on_the_way_are_followed_within_the_image() {
    let below = vec![
        directory("usr"),
        directory("usr/bin"),
        symlink("bin", "usr/bin"),
    ];
    let above = vec![
        file("bin/tool"),
        symlink("up", "../../../../usr"),
        file("up/here"),
        symlink("whole", "/usr/bin"),
        file("whole/two"),
    ];
    let left = applied(vec![below, above]).unwrap();
    let expected = [
        "/bin",
        "/up",
        "/usr",
        "/usr/bin",
        "/usr/bin/tool",
        "/usr/bin/two",
        "/usr/here",
        "/whole",
    ];
    assert_eq!(left, expected);
}

#[test]
fn a_link_to_nowhere_is_made_within_the_image() {
    let left = applied(vec![vec![symlink("a", "/b/c"), file("a/x")]]).unwrap();
    assert_eq!(left, ["/a", "/b", "/b/c", "/b/c/x"]);
}

#[test]
fn circles_of_links_are_refused() {
    let circle = vec![symlink("a", "b"), symlink("b", "a"), file("a/x")];
    assert!(matches!(
        applied(vec![circle]),
        Err(ApplyError::Links { .. })
    ));
    let below = vec![symlink("a", "a")];
    let hidden = vec![whiteout("a/x")];
    assert!(matches!(
        applied(vec![below, hidden]),
        Err(ApplyError::Links { .. })
    ));
}

#[test]
fn hard_links_share_one_node_and_lead_to_files_alone() {
    let mut tree = Tree::default();
    tree.apply(vec![file("a")]).unwrap();
    tree.apply(vec![hard_link("d/b", "a")]).unwrap();
    let a = tree.child(tree.root(), b"a");
    let d = tree.child(tree.root(), b"d").unwrap();
    assert_eq!(tree.child(d, b"b"), a);
    for target in ["d", "none", "d/none", "/", "a/x"] {
        let wrong = tree.apply(vec![hard_link("x", target)]);
        assert!(
            matches!(wrong, Err(ApplyError::HardLink { .. })),
            "{target}"
        );
    }
}

#[test]
fn a_file_written_anew_does_not_change_its_other_names() {
    let mut tree = Tree::default();
    tree.apply(vec![file("a"), hard_link("b", "a")]).unwrap();
    tree.apply(vec![file("a")]).unwrap();
    let child = |name: &[u8]| tree.child(tree.root(), name).unwrap();
    assert_ne!(child(b"a"), child(b"b"));
}

#[test]
fn what_cannot_be_is_refused() {
    let inside_a_file = applied(vec![vec![file("a"), file("a/b")]]);
    assert!(matches!(
        inside_a_file,
        Err(ApplyError::NotADirectory { .. })
    ));
    let device = EntryKind::CharacterDevice(Device { major: 0, minor: 0 });
    let mark = applied(vec![vec![entry("a", device)]]);
    assert!(matches!(mark, Err(ApplyError::OverlayWhiteout { .. })));
    let mut attribute = file("a");
    let name = b"trusted.overlay.redirect".to_vec();
    attribute.metadata.attributes.insert(name, b"/etc".to_vec());
    let attribute = applied(vec![vec![attribute]]);
    assert!(matches!(attribute, Err(ApplyError::Attribute { .. })));
}
