//! Content over HTTP, below `/v1/database/<name>/route`: /content and /content?id=<id>. The server makes the ids.

use serde_json::{json, Map, Value};
use spacetimedb::http::{handler, router, Body, HandlerContext, Request, Response, Router};
use spacetimedb::rand::RngCore;
use spacetimedb::{Table, TxContext};

use crate::{content, Content};

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARACTERS: u32 = 10;
const RANDOM_CHARACTERS: usize = 16;

/// What is wrong with a request; answered with 400.
struct BadRequest(String);

fn bad<T>(text: &str) -> Result<T, BadRequest> {
    Err(BadRequest(text.into()))
}

fn reply(status: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from_bytes(body.to_string()));
    *response.status_mut() = status.try_into().expect("a status");
    let kind = "application/json".try_into().expect("a header");
    response.headers_mut().insert("content-type", kind);
    response
}

fn not_found() -> Response {
    reply(404, &json!({ "error": "not found" }))
}

fn answer(status: u16, record: &Content) -> Response {
    let data = record.data.as_deref().map(serde_json::from_str::<Value>);
    let body = json!({
        "id": record.id,
        "title": record.title,
        "body": record.body,
        "author": record.author,
        "status": record.status,
        "data": data.and_then(Result::ok),
        "created_at": record.created_at.to_rfc3339().unwrap_or_default(),
        "updated_at": record.updated_at.to_rfc3339().unwrap_or_default(),
    });
    reply(status, &body)
}

fn refused(result: Result<Response, BadRequest>) -> Response {
    result.unwrap_or_else(|BadRequest(text)| reply(400, &json!({ "error": text })))
}

fn id_of(request: &Request) -> Result<String, BadRequest> {
    let query = request.uri().query().unwrap_or_default();
    // Ids have no character that must be escaped.
    match query.split('&').find_map(|part| part.strip_prefix("id=")) {
        Some(id) if !id.is_empty() => Ok(id.into()),
        _ => bad("id is needed: /content?id=<id>"),
    }
}

/// What a body sets; null is as if left out.
#[derive(Default)]
struct Change {
    title: Option<String>,
    body: Option<String>,
    author: Option<String>,
    status: Option<String>,
    data: Option<String>,
}

fn change_of(request: Request) -> Result<Change, BadRequest> {
    let Ok(body) = serde_json::from_slice(&request.into_body().into_bytes()) else {
        return bad("the body is no JSON");
    };
    let Value::Object(mut fields) = body else {
        return bad("the body is no JSON object");
    };
    Ok(Change {
        title: text(&mut fields, "title")?,
        body: text(&mut fields, "body")?,
        author: text(&mut fields, "author")?,
        status: text(&mut fields, "status")?,
        data: fields
            .get("data")
            .filter(|data| !data.is_null())
            .map(Value::to_string),
    })
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, BadRequest> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => bad(&format!("{name} is no text")),
    }
}

/// 48 bits of milliseconds and 80 random bits.
fn ulid(tx: &TxContext) -> String {
    let milliseconds = tx.timestamp.to_micros_since_unix_epoch() / 1000;
    let time = (0..TIME_CHARACTERS)
        .rev()
        .map(|place| milliseconds >> (5 * place));
    let mut random = [0; RANDOM_CHARACTERS];
    tx.rng().fill_bytes(&mut random);
    let random = random.into_iter().map(i64::from);
    time.chain(random)
        .map(|bits| char::from(ALPHABET[bits as usize & 31]))
        .collect()
}

fn create(ctx: &mut HandlerContext, request: Request) -> Result<Response, BadRequest> {
    let change = change_of(request)?;
    let (Some(title), Some(body)) = (&change.title, &change.body) else {
        return bad("title and body are needed");
    };
    let record = ctx.with_tx(|tx| {
        let by_id = tx.db.content().id();
        // Random numbers come from the time: two calls of one microsecond have the same.
        let mut id = ulid(tx);
        while by_id.find(&id).is_some() {
            id = ulid(tx);
        }
        tx.db.content().insert(Content {
            id,
            title: title.clone(),
            body: body.clone(),
            author: change.author.clone(),
            status: change.status.clone(),
            data: change.data.clone(),
            created_at: tx.timestamp,
            updated_at: tx.timestamp,
        })
    });
    Ok(answer(201, &record))
}

fn read(ctx: &mut HandlerContext, request: &Request) -> Result<Response, BadRequest> {
    let id = id_of(request)?;
    let record = ctx.with_tx(|tx| tx.db.content().id().find(&id));
    Ok(record.map_or_else(not_found, |record| answer(200, &record)))
}

fn update(ctx: &mut HandlerContext, request: Request) -> Result<Response, BadRequest> {
    let id = id_of(&request)?;
    let change = change_of(request)?;
    let changed = ctx.with_tx(|tx| {
        let by_id = tx.db.content().id();
        let record = by_id.find(&id)?;
        Some(by_id.update(Content {
            title: change.title.clone().unwrap_or(record.title),
            body: change.body.clone().unwrap_or(record.body),
            author: change.author.clone().or(record.author),
            status: change.status.clone().or(record.status),
            data: change.data.clone().or(record.data),
            updated_at: tx.timestamp,
            ..record
        }))
    });
    Ok(changed.map_or_else(not_found, |record| answer(200, &record)))
}

fn delete(ctx: &mut HandlerContext, request: &Request) -> Result<Response, BadRequest> {
    let id = id_of(request)?;
    if !ctx.with_tx(|tx| tx.db.content().id().delete(&id)) {
        return Ok(not_found());
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = 204.try_into().expect("a status");
    Ok(response)
}

#[handler]
fn post_content(ctx: &mut HandlerContext, request: Request) -> Response {
    refused(create(ctx, request))
}

#[handler]
fn get_content(ctx: &mut HandlerContext, request: Request) -> Response {
    refused(read(ctx, &request))
}

#[handler]
fn put_content(ctx: &mut HandlerContext, request: Request) -> Response {
    refused(update(ctx, request))
}

#[handler]
fn delete_content(ctx: &mut HandlerContext, request: Request) -> Response {
    refused(delete(ctx, &request))
}

#[router]
fn routes() -> Router {
    Router::new()
        .post("/content", post_content)
        .get("/content", get_content)
        .put("/content", put_content)
        .delete("/content", delete_content)
}
