// Answers each POST with the method that Tomcat finds in its content.

import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;

public final class Methods {
    public static void main(String[] words) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(words[1]);
        tomcat.setPort(Integer.parseInt(words[0]));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", null);
        Wrapper servlet = Tomcat.addServlet(context, "method", new HttpServlet() {
            @Override
            protected void service(HttpServletRequest request, HttpServletResponse response)
                    throws IOException, ServletException {
                String found = request.getParameter("_method");
                byte[] bytes = (found == null ? "" : found).getBytes("UTF-8");
                response.setContentLength(bytes.length);
                response.getOutputStream().write(bytes);
            }
        });
        servlet.setMultipartConfigElement(new MultipartConfigElement(""));
        context.addServletMappingDecoded("/*", "method");
        tomcat.start();
        tomcat.getServer().await();
    }
}
