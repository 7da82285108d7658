//! Whether the database keeps what is written.

use super::{Store, StoreError};

const SET: &str = "INSERT INTO write_checks (id, mark) VALUES ('control', $1) \
    ON CONFLICT (id) DO UPDATE SET mark = excluded.mark";
const SELECT: &str = "SELECT mark FROM write_checks WHERE id = 'control'";

impl Store {
    /// Writes a mark, and reads it again as every reader does. One at a time.
    ///
    /// # Errors
    /// [`StoreError`]: nothing can be written now.
    pub async fn check_writing(&self, mark: i64) -> Result<(), StoreError> {
        let operation = "write a mark";
        let mut writing = self.writer.begin(operation).await?;
        writing.execute(sqlx::query(SET).bind(mark)).await?;
        writing.commit().await?;
        let (kept,): (i64,) = sqlx::query_as(SELECT)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("read a mark"))?;
        if kept == mark {
            Ok(())
        } else {
            Err(StoreError::NotKept { operation })
        }
    }
}
