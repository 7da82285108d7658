//! `dayfly fs`: what can be done to files of a sandbox beside copying them.

use dayfly_api::{
    ChangeMode, ChangedFile, DirectoryListing, FileChange, FileEntry, MakeDirectory, MoveFile,
};
use dayfly_client::{ListOptions, RemoveOptions, WatchItem};
use serde_json::json;
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::files::args::{FilesArgs, FilesCommand, GuestPlace};
use crate::files::link;
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::{ages, exit_status, signals, text};

/// Entries that are asked for at once when all are wanted.
const PAGE_ENTRIES: u32 = 5000;

pub(crate) async fn files(session: &Session<'_>, args: &FilesArgs) -> Result<u8, CommandError> {
    let files = Files {
        session,
        user: args.user.clone(),
    };
    match &args.command {
        FilesCommand::Ls {
            place,
            depth,
            limit,
            after,
        } => files.list(&place.0, *depth, *limit, after.clone()).await,
        FilesCommand::Stat { place } => files.stat(place).await,
        FilesCommand::Mkdir {
            places,
            parents,
            mode,
        } => {
            files
                .make_directories(places, *parents, mode.as_ref())
                .await
        }
        FilesCommand::Mv { from, to, force } => files.rename(from, to, *force).await,
        FilesCommand::Rm { places, recursive } => files.remove(places, *recursive).await,
        FilesCommand::Chmod { mode, places } => files.change_mode(mode, places).await,
        FilesCommand::Watch { place, recursive } => {
            signals::until_left(files.watch(&place.0, *recursive)).await
        }
        FilesCommand::Link { place, upload, ttl } => {
            link::create(session, args.user.as_deref(), place, *upload, *ttl).await
        }
        FilesCommand::Revoke { id, link } => link::revoke(session, id, link).await,
        FilesCommand::Changes { place, since } => files.changes(&place.0, since.as_deref()).await,
    }
}

struct Files<'a> {
    session: &'a Session<'a>,
    user: Option<String>,
}

impl Files<'_> {
    async fn id(&self, place: &GuestPlace) -> Result<String, CommandError> {
        Ok(prefixes::resolve(&self.session.client, &place.sandbox).await?)
    }

    async fn list(
        &self,
        place: &GuestPlace,
        depth: u32,
        limit: Option<u32>,
        after: Option<String>,
    ) -> Result<u8, CommandError> {
        let id = self.id(place).await?;
        let mut options = ListOptions {
            depth: Some(depth),
            limit: limit.or(Some(PAGE_ENTRIES)),
            after,
            user: self.user.clone(),
        };
        let mut whole: Option<DirectoryListing> = None;
        loop {
            let page = self
                .session
                .client
                .list_directory_with(&id, &place.path, &options)
                .await
                .map_err(failed("list", &id, &place.path))?;
            options.after = page.next_after.clone();
            let is_last = limit.is_some() || !page.has_more || options.after.is_none();
            if self.session.printer.is_json() {
                match &mut whole {
                    None => whole = Some(page),
                    Some(whole) => {
                        whole.entries.extend(page.entries);
                        whole.truncated = page.truncated;
                        whole.has_more = page.has_more;
                        whole.next_after = page.next_after;
                    }
                }
            } else {
                self.print_page(&page)?;
            }
            if is_last {
                break;
            }
        }
        if let Some(whole) = whole {
            self.session.printer.json(&whole)?;
        }
        Ok(exit_status::OK)
    }

    fn print_page(&self, page: &DirectoryListing) -> Result<(), CommandError> {
        let printer = self.session.printer;
        if printer.is_quiet() {
            let names = page.entries.iter();
            let names = names.map(|entry| text::visible(&entry.name) + "\n");
            return printer.data(&names.collect::<String>());
        }
        let mut table = Table::new(&["MODE", "OWNER", "SIZE", "AGE", "NAME"]);
        for entry in &page.entries {
            table.push(row(entry));
        }
        printer.table(&table)?;
        if page.entries.is_empty() {
            printer.note("nothing is there");
        }
        Ok(())
    }

    async fn stat(&self, place: &GuestPlace) -> Result<u8, CommandError> {
        let id = self.id(place).await?;
        let entry = self
            .session
            .client
            .stat_as(&id, &place.path, self.user.as_deref())
            .await
            .map_err(failed("look at", &id, &place.path))?;
        if self.session.printer.is_json() {
            self.session.printer.json(&entry)?;
        } else {
            let mut table = Table::new(&["MODE", "OWNER", "SIZE", "AGE", "NAME"]);
            table.push(row(&entry));
            self.session.printer.table(&table)?;
        }
        Ok(exit_status::OK)
    }

    async fn make_directories(
        &self,
        places: &[GuestPlace],
        parents: bool,
        mode: Option<&String>,
    ) -> Result<u8, CommandError> {
        for place in places {
            let id = self.id(place).await?;
            let request = MakeDirectory {
                path: place.path.clone(),
                mode: mode.cloned(),
                parents: parents.then_some(true),
                user: self.user.clone(),
            };
            let made = self.session.client.make_directory(&id, &request).await;
            made.map_err(failed("make", &id, &place.path))?;
        }
        self.done()
    }

    async fn rename(&self, from: &GuestPlace, to: &str, replace: bool) -> Result<u8, CommandError> {
        let id = self.id(from).await?;
        let to = match to.parse::<GuestPlace>() {
            Ok(place) if self.id(&place).await? == id => place.path,
            Ok(_) => {
                return Err(CommandError::Usage {
                    what: "the two paths are in two sandboxes".to_owned(),
                    hint: "copy it: dayfly cp A:/path - | dayfly cp - B:/path",
                });
            }
            Err(_) => to.to_owned(),
        };
        let request = MoveFile {
            from: from.path.clone(),
            to,
            replace: replace.then_some(true),
            user: self.user.clone(),
        };
        let moved = self.session.client.move_file(&id, &request).await;
        moved.map_err(failed("move", &id, &from.path))?;
        self.done()
    }

    async fn remove(&self, places: &[GuestPlace], recursive: bool) -> Result<u8, CommandError> {
        let options = RemoveOptions {
            recursive,
            user: self.user.clone(),
        };
        for place in places {
            let id = self.id(place).await?;
            let client = &self.session.client;
            let removed = client.remove_file(&id, &place.path, &options).await;
            removed.map_err(failed("remove", &id, &place.path))?;
        }
        self.done()
    }

    async fn change_mode(&self, mode: &str, places: &[GuestPlace]) -> Result<u8, CommandError> {
        for place in places {
            let id = self.id(place).await?;
            let request = ChangeMode {
                path: place.path.clone(),
                mode: mode.to_owned(),
                user: self.user.clone(),
            };
            let changed = self.session.client.change_mode(&id, &request).await;
            changed.map_err(failed("change", &id, &place.path))?;
        }
        self.done()
    }

    async fn watch(&self, place: &GuestPlace, recursive: bool) -> Result<u8, CommandError> {
        let id = self.id(place).await?;
        let client = &self.session.client;
        let mut watch = client
            .watch_files(&id, &place.path, recursive, self.user.as_deref())
            .await
            .map_err(failed("watch", &id, &place.path))?;
        loop {
            let item = watch.next().await;
            match item.map_err(failed("watch", &id, &place.path))? {
                Some(item) => self.print_change(&item)?,
                None => return Ok(exit_status::OK),
            }
        }
    }

    fn print_change(&self, item: &WatchItem) -> Result<(), CommandError> {
        let printer = self.session.printer;
        match item {
            WatchItem::Change(change) if printer.is_json() => {
                // One object in a line, also on a terminal: more may follow for ever.
                printer.line(&serde_json::to_string(change).unwrap_or_default())
            }
            WatchItem::Overflow if printer.is_json() => {
                printer.line(&json!({"kind": "overflow"}).to_string())
            }
            WatchItem::Change(change) => printer.line(&words(change)),
            WatchItem::Overflow => {
                printer.warning("some changes were lost; look for yourself");
                Ok(())
            }
        }
    }

    async fn changes(&self, place: &GuestPlace, since: Option<&str>) -> Result<u8, CommandError> {
        let client = &self.session.client;
        let id = self.id(place).await?;
        let since = match since {
            None | Some("create") => None,
            Some(snapshot) => Some(prefixes::resolve_snapshot(client, snapshot).await?),
        };
        let list = client
            .list_changes(&id, &place.path, since.as_deref())
            .await
            .map_err(failed("list changes of", &id, &place.path))?;
        let printer = self.session.printer;
        if printer.is_json() {
            printer.json(&list)?;
            return Ok(exit_status::OK);
        }
        let lines = list.entries.iter().map(|entry| changed(entry) + "\n");
        printer.data(&lines.collect::<String>())?;
        if list.truncated {
            printer.warning("there are more changes than one answer holds; name a directory below");
        }
        Ok(exit_status::OK)
    }

    fn done(&self) -> Result<u8, CommandError> {
        if self.session.printer.is_json() {
            self.session.printer.json(&json!({}))?;
        }
        Ok(exit_status::OK)
    }
}

pub(super) fn failed<'a>(
    what: &'a str,
    id: &'a str,
    path: &'a str,
) -> impl FnOnce(dayfly_client::ClientError) -> CommandError + 'a {
    move |source| {
        CommandError::call(format!("cannot {what} {path} in {id}"), source).about(Subject::File)
    }
}

fn row(entry: &FileEntry) -> Vec<String> {
    let kind = if entry.is_dir {
        "d"
    } else if entry.is_symlink {
        "l"
    } else {
        "-"
    };
    let moment = OffsetDateTime::from_unix_timestamp(entry.mtime).ok();
    let moment = moment.and_then(|moment| {
        let format = &time::format_description::well_known::Rfc3339;
        moment.format(format).ok()
    });
    vec![
        format!("{kind}{}", entry.mode),
        format!("{}:{}", entry.uid, entry.gid),
        entry.size.to_string(),
        ages::since(&moment.unwrap_or_default(), OffsetDateTime::now_utc()),
        entry.name.clone(),
    ]
}

/// One line: the kind, the path, and where it came from.
fn words(change: &FileChange) -> String {
    let path = text::visible(&change.path);
    let slash = if change.is_dir { "/" } else { "" };
    let from = change.from.as_deref().map(text::visible);
    let from = from.map_or_else(String::new, |from| format!(" from {from}"));
    format!("{} {path}{slash}{from}", text::visible(&change.kind))
}

/// One line as `git status` has it: a letter and the path.
fn changed(entry: &ChangedFile) -> String {
    let letter = match entry.kind.as_str() {
        "added" => "A",
        "modified" => "M",
        "removed" => "D",
        _ => "?",
    };
    let slash = if entry.is_dir { "/" } else { "" };
    format!("{letter} {}{slash}", text::visible(&entry.path))
}
