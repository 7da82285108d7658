//! Templates that projects have ordered, and the tags of their versions.

use dayfly_types::{ProjectId, TemplateName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::FromRow;

use super::{Store, StoreError};

// Not of a project that is on its way out, and not more than it may have.
const INSERT: &str = "INSERT INTO ordered_templates (id, project_id, kind, name, node_template, \
    document, made_by, created_at_ms, used_at_ms) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $8 \
    WHERE EXISTS (SELECT 1 FROM projects WHERE id = $2 AND state = 'active') \
    AND (SELECT COUNT(*) FROM ordered_templates WHERE project_id = $2 AND kind = $3 \
    AND is_deleting = 0) < $9 \
    ON CONFLICT (node_template) DO NOTHING";
const SELECT: &str = "SELECT * FROM ordered_templates WHERE project_id = $1 AND kind = $2 \
    AND is_deleting = 0 ORDER BY created_at_ms DESC, id DESC";
const SELECT_NAMED: &str = "SELECT * FROM ordered_templates WHERE project_id = $1 AND kind = $2 \
    AND name = $3 AND is_deleting = 0 ORDER BY created_at_ms DESC, id DESC";
const SELECT_ONE: &str = "SELECT * FROM ordered_templates WHERE project_id = $1 AND id = $2 \
    AND is_deleting = 0";
const SELECT_GOING_ONE: &str = "SELECT COUNT(*) FROM ordered_templates WHERE project_id = $1 \
    AND id = $2 AND is_deleting = 1";
const SELECT_TAGGED: &str = "SELECT ordered_templates.* FROM template_tags \
    JOIN ordered_templates ON ordered_templates.id = template_tags.version_id \
    WHERE template_tags.project_id = $1 AND template_tags.name = $2 AND template_tags.tag = $3 \
    AND ordered_templates.project_id = $1 AND ordered_templates.is_deleting = 0";
const SELECT_TAGS: &str = "SELECT name, tag, version_id FROM template_tags WHERE project_id = $1 \
    ORDER BY name, tag";
const TOUCH: &str =
    "UPDATE ordered_templates SET used_at_ms = $3 WHERE project_id = $1 AND id = $2";
const SET_TAG: &str = "INSERT INTO template_tags (project_id, name, tag, version_id, set_at_ms) \
    SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM ordered_templates WHERE project_id = $1 \
    AND id = $4 AND name = $2 AND kind = 'version' AND is_deleting = 0) \
    ON CONFLICT (project_id, name, tag) DO UPDATE SET version_id = $4, set_at_ms = $5";
const DELETE_TAG: &str =
    "DELETE FROM template_tags WHERE project_id = $1 AND name = $2 AND tag = $3";
const DELETE_TAGS: &str = "DELETE FROM template_tags WHERE project_id = $1 AND version_id = $2";
const MARK: &str = "UPDATE ordered_templates SET is_deleting = 1 WHERE project_id = $1 AND id = $2";
const MARK_UNTAGGED: &str = "UPDATE ordered_templates SET is_deleting = 1 \
    WHERE project_id = $1 AND id = $2 \
    AND NOT EXISTS (SELECT 1 FROM template_tags WHERE project_id = $1 AND version_id = $2)";
const MARK_ALL: &str = "UPDATE ordered_templates SET is_deleting = 1 WHERE project_id = $1";
const DELETE_ALL_TAGS: &str = "DELETE FROM template_tags WHERE project_id = $1";
const DELETE: &str =
    "DELETE FROM ordered_templates WHERE project_id = $1 AND id = $2 AND is_deleting = 1";

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKind {
    /// An image of a container; its name is the address.
    Image,
    /// A version of a template of the project's own.
    Version,
}

impl OrderKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Version => "version",
        }
    }
}

/// What else is kept of an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderDocument {
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_snapshot: Option<String>,
    #[serde(default)]
    pub memory_mb: u64,
    #[serde(default)]
    pub cpu: u32,
    #[serde(default)]
    pub disk_mib: u64,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
}

/// A template that a project has ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderRow {
    pub id: String,
    pub project: ProjectId,
    pub kind: OrderKind,
    pub name: String,
    pub node_template: TemplateName,
    pub document: OrderDocument,
    pub made_by: Option<String>,
    pub created_at_ms: i64,
    pub used_at_ms: i64,
}

/// What a tag means.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct TagRow {
    pub name: String,
    pub tag: String,
    pub version_id: String,
}

#[derive(Debug, FromRow)]
pub(super) struct RawOrder {
    id: String,
    project_id: String,
    kind: String,
    name: String,
    node_template: String,
    document: String,
    made_by: Option<String>,
    created_at_ms: i64,
    used_at_ms: i64,
}

impl TryFrom<RawOrder> for OrderRow {
    type Error = StoreError;

    fn try_from(raw: RawOrder) -> Result<Self, StoreError> {
        let corrupt = |column| StoreError::Corrupt {
            table: "ordered_templates",
            column,
        };
        let kinds = [OrderKind::Image, OrderKind::Version];
        let kind = kinds.into_iter().find(|kind| kind.as_str() == raw.kind);
        let node_template = TemplateName::parse(&raw.node_template);
        Ok(Self {
            id: raw.id,
            project: ProjectId::parse(&raw.project_id).map_err(|_| corrupt("project_id"))?,
            kind: kind.ok_or(corrupt("kind"))?,
            name: raw.name,
            node_template: node_template.map_err(|_| corrupt("node_template"))?,
            document: serde_json::from_str(&raw.document).map_err(|_| corrupt("document"))?,
            made_by: raw.made_by,
            created_at_ms: raw.created_at_ms,
            used_at_ms: raw.used_at_ms,
        })
    }
}

/// Whether a delete took hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    Yes,
    /// A tag means it, or there is no such version.
    No,
}

impl Store {
    /// Keeps an order. Says whether there is room for it and its project may have one; one that is
    /// there already is left as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn insert_order(&self, order: &OrderRow, most: i64) -> Result<bool, StoreError> {
        let document = serde_json::to_string(&order.document).unwrap_or_default();
        let operation = "write an order of a template";
        let mut writing = self.writer.begin_in_turn(&order.project, operation).await?;
        let query = sqlx::query(INSERT)
            .bind(&order.id)
            .bind(order.project.as_str())
            .bind(order.kind.as_str())
            .bind(&order.name)
            .bind(order.node_template.as_str())
            .bind(document)
            .bind(&order.made_by)
            .bind(order.created_at_ms)
            .bind(most);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// All orders of a kind, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn orders(
        &self,
        project: &ProjectId,
        kind: OrderKind,
    ) -> Result<Vec<OrderRow>, StoreError> {
        let raw: Vec<RawOrder> = sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(kind.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list templates"))?;
        raw.into_iter().map(OrderRow::try_from).collect()
    }

    /// Those of one name, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn orders_named(
        &self,
        project: &ProjectId,
        kind: OrderKind,
        name: &str,
    ) -> Result<Vec<OrderRow>, StoreError> {
        let raw: Vec<RawOrder> = sqlx::query_as(SELECT_NAMED)
            .bind(project.as_str())
            .bind(kind.as_str())
            .bind(name)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list versions of a template"))?;
        raw.into_iter().map(OrderRow::try_from).collect()
    }

    /// # Errors
    /// [`StoreError`].
    pub async fn order(
        &self,
        project: &ProjectId,
        id: &str,
    ) -> Result<Option<OrderRow>, StoreError> {
        let raw: Option<RawOrder> = sqlx::query_as(SELECT_ONE)
            .bind(project.as_str())
            .bind(id)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read an order of a template"))?;
        raw.map(OrderRow::try_from).transpose()
    }

    /// Whether an order is on its way out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn is_order_going(&self, project: &ProjectId, id: &str) -> Result<bool, StoreError> {
        let count: i64 = sqlx::query_scalar(SELECT_GOING_ONE)
            .bind(project.as_str())
            .bind(id)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("see whether a template goes"))?;
        Ok(count > 0)
    }

    /// The version that a tag means.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tagged(
        &self,
        project: &ProjectId,
        name: &str,
        tag: &str,
    ) -> Result<Option<OrderRow>, StoreError> {
        let raw: Option<RawOrder> = sqlx::query_as(SELECT_TAGGED)
            .bind(project.as_str())
            .bind(name)
            .bind(tag)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a tag"))?;
        raw.map(OrderRow::try_from).transpose()
    }

    /// All tags of a project.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tags(&self, project: &ProjectId) -> Result<Vec<TagRow>, StoreError> {
        sqlx::query_as(SELECT_TAGS)
            .bind(project.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list tags"))
    }

    /// Remembers when an order was used last.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn touch_order(
        &self,
        project: &ProjectId,
        id: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "note the use of a template";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(TOUCH)
            .bind(project.as_str())
            .bind(id)
            .bind(now_ms);
        writing.execute(query).await?;
        writing.commit().await
    }

    /// Lets a tag mean a version of the same template. Says whether there is such a version.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_tag(
        &self,
        project: &ProjectId,
        tag: &TagRow,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let operation = "set a tag";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(SET_TAG)
            .bind(project.as_str())
            .bind(&tag.name)
            .bind(&tag.tag)
            .bind(&tag.version_id)
            .bind(now_ms);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// Says whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_tag(
        &self,
        project: &ProjectId,
        name: &str,
        tag: &str,
    ) -> Result<bool, StoreError> {
        let operation = "delete a tag";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(DELETE_TAG)
            .bind(project.as_str())
            .bind(name)
            .bind(tag);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// Hides an order, unless a tag means it: from then on it is on its way out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_order(&self, project: &ProjectId, id: &str) -> Result<Marked, StoreError> {
        let operation = "delete a version";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(MARK_UNTAGGED).bind(project.as_str()).bind(id);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(if rows > 0 { Marked::Yes } else { Marked::No })
    }

    /// Hides an order together with its tags.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_order_with_tags(
        &self,
        project: &ProjectId,
        id: &str,
    ) -> Result<(), StoreError> {
        let operation = "delete a template";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        for statement in [DELETE_TAGS, MARK] {
            let query = sqlx::query(statement).bind(project.as_str()).bind(id);
            writing.execute(query).await?;
        }
        writing.commit().await
    }

    /// The same of all orders of a project.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_all_orders(&self, project: &ProjectId) -> Result<(), StoreError> {
        let mut writing = self
            .writer
            .begin("delete the templates of a project")
            .await?;
        for statement in [DELETE_ALL_TAGS, MARK_ALL] {
            let query = sqlx::query(statement).bind(project.as_str());
            writing.execute(query).await?;
        }
        writing.commit().await
    }

    /// The node has given the template up.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_order(&self, project: &ProjectId, id: &str) -> Result<(), StoreError> {
        let operation = "forget a template";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(DELETE).bind(project.as_str()).bind(id);
        writing.execute(query).await?;
        writing.commit().await
    }
}
