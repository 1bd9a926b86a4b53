// Fetches a URL with net/http: `fetch URL [CA]`. Built without cgo, so that it
// is static and resolves names itself.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if len(os.Args) > 2 {
		text, err := os.ReadFile(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	client := http.Client{Transport: transport, Timeout: 30 * time.Second}
	response, err := client.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	body, err := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, string(body), err)
	if response.StatusCode != 200 {
		os.Exit(1)
	}
}
