// Fetches a URL with HttpClient: `java Fetch.java URL`.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

class Fetch {
    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(30)).build();
        var request = HttpRequest.newBuilder(URI.create(arguments[0])).timeout(Duration.ofSeconds(30)).build();
        var response = client.send(request, BodyHandlers.ofString());
        System.out.println(response.statusCode() + " " + response.body());
        System.exit(response.statusCode() == 200 ? 0 : 1);
    }
}
