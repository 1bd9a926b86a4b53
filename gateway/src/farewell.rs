//! The end of a connection that the client may still be sending on.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;

/// Sends last words and waits until they were heard, so that what the client
/// still sends does not turn them into a reset.
pub(crate) async fn farewell(mut stream: TcpStream, words: &[u8]) {
    const SIP: usize = 4096;
    let heard = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        // On the heap: what lives in this future costs every connection.
        let mut sip = vec![0; SIP];
        while stream.read(&mut sip).await? > 0 {}
        std::io::Result::Ok(())
    };
    timeout(limits::LINGER_TIME, heard).await.ok();
}
