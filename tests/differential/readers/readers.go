// What the parsers of Go make of targets and queries, and what a ServeMux and a
// FileServer serve. The exchange is that of readers.js.
package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"strings"
)

func escape(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		if b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02x", b)
		}
	}
	return out.String()
}

// opened records what a FileServer would open.
type opened struct{ name *string }

func (o opened) Open(name string) (http.File, error) {
	*o.name = name
	return nil, os.ErrNotExist
}

type entry struct{ name, path string }

func paths(target string) []entry {
	var out []entry
	add := func(name, path string) { out = append(out, entry{name, path}) }
	if parsed, err := url.Parse(target); err == nil {
		add("go url.Parse", parsed.Path)
		add("go url.Parse escaped", parsed.EscapedPath())
	}
	if parsed, err := url.ParseRequestURI(target); err == nil {
		add("go url.ParseRequestURI", parsed.Path)
	}
	if base, err := url.Parse("http://localhost/"); err == nil {
		if joined, err := base.Parse(target); err == nil {
			add("go url joined", joined.Path)
		}
	}
	if decoded, err := url.PathUnescape(strings.Split(target, "?")[0]); err == nil {
		if parsed, err := url.Parse(decoded); err == nil {
			add("go url.Parse decoded", parsed.Path)
		}
	}
	text := "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return out
	}
	add("go net/http", request.URL.Path)
	add("go path.Clean", path.Clean(request.URL.Path))
	served := ""
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { served = r.URL.Path })
	mux.ServeHTTP(httptest.NewRecorder(), request)
	if served != "" {
		add("go ServeMux", served)
	}
	name := ""
	http.FileServer(opened{&name}).ServeHTTP(httptest.NewRecorder(), request)
	if name != "" {
		add("go FileServer", name)
	}
	return out
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 1<<20), 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for input.Scan() {
		line := input.Text()
		if len(line) < 2 {
			continue
		}
		var entries []string
		if line[0] == 'P' {
			for _, one := range paths(line[2:]) {
				entries = append(entries, escape(one.name)+" "+escape(one.path))
			}
		} else {
			// Go keeps what it could read beside what it reports.
			values, _ := url.ParseQuery(line[2:])
			for key, list := range values {
				for _, value := range list {
					entries = append(entries, "go "+escape(key)+" "+escape(value))
				}
			}
			request := &http.Request{Method: "GET", URL: &url.URL{RawQuery: line[2:]}}
			for key, list := range values {
				_ = list
				entries = append(entries, "go%20FormValue "+escape(key)+" "+escape(request.FormValue(key)))
			}
		}
		fmt.Fprintln(out, strings.Join(entries, "\t"))
	}
}
