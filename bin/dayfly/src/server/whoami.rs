//! `dayfly whoami`.

use dayfly_api::Me;

use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::table::Table;

pub(crate) async fn show(session: &Session<'_>) -> Result<u8, CommandError> {
    let me = session.client.me().await;
    let me = me.map_err(|source| CommandError::call("cannot read whose key this is", source))?;
    if session.printer.is_json() {
        session.printer.json(&me)?;
    } else {
        session.printer.table(&table(session.client.url(), &me))?;
    }
    Ok(exit_status::OK)
}

fn table(url: &str, me: &Me) -> Table {
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("server", url.to_owned());
    row("project", me.project.clone());
    row("key", me.key_prefix.clone());
    row("scopes", me.scopes.join(", "));
    if let Some(sandbox) = &me.sandbox_id {
        row("only sandbox", sandbox.clone());
    }
    table
}
