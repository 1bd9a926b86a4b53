// A client in Go, over HTTP and over gRPC: `client get URL`, `client call
// HOST:PORT` without TLS, and `client call-tls HOST:PORT`.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// raw sends messages as they are.
type raw struct{}

func (raw) Marshal(message interface{}) ([]byte, error) { return *message.(*[]byte), nil }

func (raw) Unmarshal(data []byte, message interface{}) error {
	*message.(*[]byte) = data
	return nil
}

func (raw) Name() string { return "proto" }

func get(url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, string(text))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", response.Status)
	}
	return err
}

func call(address string, security grpc.DialOption) error {
	codec := grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}))
	channel, err := grpc.Dial(address, security, codec)
	if err != nil {
		return err
	}
	defer channel.Close()
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	asked, answer := []byte("one"), []byte{}
	if err := channel.Invoke(limit, "/demo.Echo/Once", &asked, &answer); err != nil {
		return err
	}
	fmt.Println(string(answer))
	kind := grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := channel.NewStream(limit, &kind, "/demo.Echo/Both")
	if err != nil {
		return err
	}
	for _, text := range []string{"first", "last"} {
		part := []byte(text)
		// Why it ended is what the answer says.
		if err := stream.SendMsg(&part); err != nil && err != io.EOF {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		part := []byte{}
		err := stream.RecvMsg(&part)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(string(part))
	}
}

func main() {
	var err error
	switch os.Args[1] {
	case "get":
		err = get(os.Args[2])
	case "call":
		err = call(os.Args[2], grpc.WithInsecure())
	case "call-tls":
		err = call(os.Args[2], grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{})))
	default:
		err = fmt.Errorf("no such word: %s", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
