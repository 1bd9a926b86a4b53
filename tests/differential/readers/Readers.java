// What the parsers of Java and its servers make of targets and queries. The
// exchange is that of readers.js. Jetty, Tomcat and the server of the JDK are
// started on loopback and asked over one connection each.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

public final class Readers {
    static String escape(String text) {
        StringBuilder out = new StringBuilder();
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            char c = (char) (b & 255);
            boolean plain = c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z';
            out.append(plain ? String.valueOf(c) : String.format("%%%02x", b & 255));
        }
        return out.toString();
    }

    static String decoded(String text) {
        return java.net.URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    /** The body with which every server answers. */
    static byte[] answer(String name, String path, Map<String, String[]> parameters) {
        List<String> entries = new ArrayList<>();
        if (parameters.isEmpty()) {
            entries.add(escape(name) + " " + escape(path));
        }
        parameters.forEach((key, values) -> {
            for (String value : values) {
                entries.add(escape(name) + " " + escape(key) + " " + escape(value));
            }
        });
        return String.join("\t", entries).getBytes(StandardCharsets.US_ASCII);
    }

    /** A connection that is kept, or made again where a server closed it. */
    static final class Line {
        final int port;
        Socket socket;
        InputStream in;
        OutputStream out;

        Line(int port) {
            this.port = port;
        }

        String header(InputStream in) throws IOException {
            StringBuilder line = new StringBuilder();
            for (int b = in.read(); b != '\n'; b = in.read()) {
                if (b < 0) {
                    throw new IOException("closed");
                }
                if (b != '\r') {
                    line.append((char) b);
                }
            }
            return line.toString();
        }

        /** What the server says of the target; null where it refuses it. */
        String ask(String target) throws IOException {
            if (socket == null) {
                socket = new Socket(InetAddress.getLoopbackAddress(), port);
                socket.setTcpNoDelay(true);
                in = new BufferedInputStream(socket.getInputStream());
                out = new BufferedOutputStream(socket.getOutputStream());
            }
            try {
                out.write(("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n").getBytes(StandardCharsets.ISO_8859_1));
                out.flush();
                String status = header(in);
                int length = -1;
                boolean closes = false;
                for (String field = header(in); !field.isEmpty(); field = header(in)) {
                    String lower = field.toLowerCase();
                    if (lower.startsWith("content-length:")) {
                        length = Integer.parseInt(lower.substring(15).trim());
                    }
                    closes |= lower.startsWith("connection: close");
                }
                byte[] body = length < 0 ? new byte[0] : in.readNBytes(length);
                if (closes || length < 0) {
                    socket.close();
                    socket = null;
                }
                return status.contains(" 200") ? new String(body, StandardCharsets.US_ASCII) : null;
            } catch (IOException closed) {
                socket.close();
                socket = null;
                return null;
            }
        }
    }

    static int jdk() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        for (String context : new String[] {"/", "/admin/", "/pub/"}) {
            server.createContext(context, (HttpExchange exchange) -> {
                // Which context serves it, and what its program would look at.
                String path = exchange.getRequestURI().getPath();
                byte[] body = (new String(answer("java HttpServer", path, Map.of()), StandardCharsets.US_ASCII)
                        + "\t" + new String(answer("java HttpServer context", context, Map.of()), StandardCharsets.US_ASCII))
                        .getBytes(StandardCharsets.US_ASCII);
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
                exchange.close();
            });
        }
        server.start();
        return server.getAddress().getPort();
    }

    static int jetty() throws Exception {
        org.eclipse.jetty.util.log.Log.setLog(new org.eclipse.jetty.util.log.JavaUtilLog());
        org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
        org.eclipse.jetty.server.ServerConnector connector = new org.eclipse.jetty.server.ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new org.eclipse.jetty.server.handler.AbstractHandler() {
            @Override
            public void handle(String target, org.eclipse.jetty.server.Request base,
                    javax.servlet.http.HttpServletRequest request, javax.servlet.http.HttpServletResponse response)
                    throws IOException {
                base.setHandled(true);
                byte[] body = answer("jetty", target, request.getParameterMap());
                response.setContentLength(body.length);
                response.getOutputStream().write(body);
            }
        });
        server.start();
        return connector.getLocalPort();
    }

    static int tomcat() throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        org.apache.catalina.startup.Tomcat tomcat = new org.apache.catalina.startup.Tomcat();
        Path base = Files.createTempDirectory("readers");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(base.toFile())));
        tomcat.setBaseDir(base.toString());
        org.apache.catalina.connector.Connector connector = new org.apache.catalina.connector.Connector();
        connector.setPort(0);
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxKeepAliveRequests", "-1");
        connector.setProperty("relaxedQueryChars", "[]|{}^\\`\"<>");
        connector.setProperty("relaxedPathChars", "[]|{}^\\`\"<>");
        connector.setProperty("encodedSolidusHandling", "decode");
        connector.setAllowBackslash(true);
        tomcat.setConnector(connector);
        org.apache.catalina.Context context = tomcat.addContext("", base.toString());
        org.apache.catalina.startup.Tomcat.addServlet(context, "all", new jakarta.servlet.http.HttpServlet() {
            @Override
            protected void doGet(jakarta.servlet.http.HttpServletRequest request,
                    jakarta.servlet.http.HttpServletResponse response) throws IOException {
                String path = request.getServletPath() + (request.getPathInfo() == null ? "" : request.getPathInfo());
                byte[] body = answer("tomcat", path, request.getParameterMap());
                response.setContentLength(body.length);
                response.getOutputStream().write(body);
            }
        });
        context.addServletMappingDecoded("/*", "all");
        tomcat.start();
        return connector.getLocalPort();
    }

    static void remove(java.io.File file) {
        java.io.File[] below = file.listFiles();
        if (below != null) {
            for (java.io.File one : below) {
                remove(one);
            }
        }
        file.delete();
    }

    static Map<String, Callable<String>> paths(String target) {
        Map<String, Callable<String>> out = new LinkedHashMap<>();
        out.put("java URI", () -> URI.create(target).getPath());
        out.put("java URI raw", () -> URI.create(target).getRawPath());
        out.put("java URI normalized", () -> URI.create(target).normalize().getPath());
        out.put("java URI resolved", () -> URI.create("http://localhost/").resolve(target).getPath());
        out.put("java URI decoded", () -> new URI(null, null, decoded(target.split("\\?")[0]), null).getPath());
        out.put("java URI of decoded", () -> URI.create(decoded(target.split("\\?")[0])).getPath());
        out.put("java URL", () -> new URL(new URL("http://localhost/"), target).getPath());
        return out;
    }

    /** What programs make of a query that is decoded already: they divide it. */
    static void divided(String query, List<String> entries) {
        String decoded = URI.create("/?" + query).getQuery();
        for (String pair : decoded.split("&")) {
            String[] halves = pair.split("=");
            String value = halves.length > 1 ? halves[1] : "";
            entries.add(escape("java getQuery") + " " + escape(halves.length > 0 ? halves[0] : "") + " " + escape(value));
            int at = pair.indexOf('=');
            if (at >= 0) {
                entries.add(escape("java getQuery indexOf") + " " + escape(pair.substring(0, at)) + " " + escape(pair.substring(at + 1)));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream real = System.out;
        System.setOut(System.err);
        Line[] lines = {new Line(jetty()), new Line(tomcat()), new Line(jdk())};
        StringBuilder out = new StringBuilder();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.ISO_8859_1));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.isEmpty()) {
                continue;
            }
            List<String> entries = new ArrayList<>();
            String text = line.substring(2);
            if (line.charAt(0) == 'P') {
                paths(text).forEach((name, read) -> {
                    try {
                        String path = read.call();
                        entries.add(escape(name) + " " + escape(path == null ? "" : path));
                    } catch (Exception refused) {
                        // What a parser refuses, it does not serve.
                    }
                });
            }
            if (line.charAt(0) == 'Q') {
                try {
                    divided(text, entries);
                } catch (IllegalArgumentException refused) {
                    // What a parser refuses, it does not serve.
                }
            }
            for (int index = 0; index < (line.charAt(0) == 'P' ? 3 : 2); index++) {
                String said = lines[index].ask(line.charAt(0) == 'P' ? text.split("\\?")[0] : "/?" + text);
                if (said != null && !said.isEmpty() && (line.charAt(0) == 'P' || said.split("\t")[0].split(" ", -1).length == 3)) {
                    entries.add(said);
                }
            }
            out.append(String.join("\t", entries)).append('\n');
        }
        real.print(out);
        real.flush();
        System.exit(0);
    }
}
