//! A client and an origin of HTTP/2 for the tests.

use std::future::Future;
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use h2::server::SendResponse;
use http::{HeaderMap, Method, Request, Response, Version};
use outgate_policy::SourceKind;
use tokio::time::timeout;

use crate::harness::{Launcher, PATIENCE, start};

/// A request as an origin gets it, and the way to answer it.
pub(super) type Asked = (Request<RecvStream>, SendResponse<Bytes>);
pub(super) type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An origin that speaks HTTP/2 only, and serves each stream by a function.
pub(super) struct Streamed {
    pub(super) address: SocketAddr,
    pub(super) seen: Arc<Mutex<Vec<String>>>,
    pub(super) connections: Arc<Mutex<u32>>,
}

impl Streamed {
    pub(super) fn start(serve: impl Fn(Asked) -> Served + Send + Sync + 'static) -> Self {
        Self::with(h2::server::Builder::new(), serve)
    }

    /// The same, with settings of its own.
    pub(super) fn with(
        settings: h2::server::Builder,
        serve: impl Fn(Asked) -> Served + Send + Sync + 'static,
    ) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections: Arc<Mutex<u32>> = Arc::default();
        let (record, count) = (Arc::clone(&seen), Arc::clone(&connections));
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            listener.set_nonblocking(true).unwrap();
            runtime().block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    *count.lock().unwrap() += 1;
                    let (record, serve) = (Arc::clone(&record), Arc::clone(&serve));
                    let settings = settings.clone();
                    tokio::spawn(async move {
                        let mut connection = settings.handshake(stream).await.unwrap();
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            record.lock().unwrap().push(words(&request));
                            let close = request.uri().path() == "/last";
                            tokio::spawn(serve((request, respond)));
                            if close {
                                connection.graceful_shutdown();
                            }
                        }
                    });
                }
            });
        });
        Self {
            address,
            seen,
            connections,
        }
    }

    pub(super) fn pin(&self, name: &str, port: u16) -> String {
        format!("{name}:{port}={}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// A request on one line.
pub(super) fn words(request: &Request<RecvStream>) -> String {
    use std::fmt::Write;
    let mut text = format!("{} {}", request.method(), request.uri());
    for (name, value) in request.headers() {
        write!(text, " {name}={}", value.to_str().unwrap()).unwrap();
    }
    text
}

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Runs the client's side of a test, never for ever.
pub(super) fn run(test: impl Future<Output = ()>) {
    runtime()
        .block_on(async { timeout(PATIENCE, test).await })
        .expect("too late");
}

pub(super) async fn client(stream: TcpStream) -> SendRequest<Bytes> {
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(stream).unwrap();
    // Room for other streams beside one that stands still.
    let (client, connection) = h2::client::Builder::new()
        .initial_connection_window_size(4 << 20)
        .handshake::<_, Bytes>(stream)
        .await
        .unwrap();
    tokio::spawn(async move { connection.await.ok() });
    client.ready().await.unwrap()
}

pub(super) fn get(uri: &str) -> Request<()> {
    let request = Request::builder().version(Version::HTTP_2).uri(uri);
    request.body(()).unwrap()
}

pub(super) fn call(path: &str) -> Request<()> {
    let mut request = get(&format!("http://a.test{path}"));
    *request.method_mut() = Method::POST;
    let fields = request.headers_mut();
    fields.insert("content-type", "application/grpc".parse().unwrap());
    fields.insert("te", "trailers".parse().unwrap());
    request
}

/// Head, content and trailers of a response.
pub(super) async fn whole(response: Response<RecvStream>) -> (Response<String>, HeaderMap) {
    let (head, mut content) = response.into_parts();
    let mut text = Vec::new();
    while let Some(data) = content.data().await {
        let data = data.unwrap();
        content.flow_control().release_capacity(data.len()).unwrap();
        text.extend_from_slice(&data);
    }
    let trailers = content.trailers().await.unwrap().unwrap_or_default();
    let text = String::from_utf8(text).unwrap();
    (Response::from_parts(head, text), trailers)
}

pub(super) async fn ask(
    client: &SendRequest<Bytes>,
    request: Request<()>,
) -> (Response<String>, HeaderMap) {
    let mut client = client.clone().ready().await.unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    whole(response.await.unwrap()).await
}

pub(super) fn hello((_, mut respond): Asked) -> Served {
    Box::pin(async move {
        let mut content = respond.send_response(Response::new(()), false).unwrap();
        content.send_data("hello".into(), true).unwrap();
    })
}

pub(super) fn session(origin: &Streamed) -> Launcher {
    start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ])
}
