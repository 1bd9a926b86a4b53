//! The lingering close of a connection that the client may still be sending on.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;

/// A lingering close (RFC 9112 9.6): sends last bytes and reads until the client has them, so
/// that what it still sends does not turn them into a reset.
pub(crate) async fn close_lingering(mut stream: TcpStream, last: &[u8]) {
    const SIP: usize = 4096;
    let closed = async {
        stream.write_all(last).await?;
        stream.shutdown().await?;
        // On the heap: what lives in this future costs every connection.
        let mut sip = vec![0; SIP];
        while stream.read(&mut sip).await? > 0 {}
        std::io::Result::Ok(())
    };
    timeout(limits::LINGER_TIME, closed).await.ok();
}
