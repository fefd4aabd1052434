package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const callTimeout = 5 * time.Second

// call calls one method of the server that listens on a unix socket, and
// returns its result. ovsdb-client and ovs-appctl do the same at the cost of a
// process per call, many times in a node's start. The protocol is JSON-RPC
// 1.0, for databases (RFC 7047, section 4) as for all daemons' control sockets
// (ovs-appctl(8)). An error of the server is returned with its text.
func call(ctx context.Context, socket, method string, params ...any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if params == nil {
		params = []any{}
	}
	const id = "basalt"
	if err := json.NewEncoder(conn).Encode(map[string]any{"method": method, "params": params, "id": id}); err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", socket, method, err)
	}
	answers := json.NewDecoder(io.LimitReader(conn, maxOutput))
	for {
		var answer struct {
			ID, Result, Error json.RawMessage
		}
		if err := answers.Decode(&answer); err != nil {
			return nil, fmt.Errorf("read the answer of %s to %s: %w", socket, method, err)
		}
		if string(answer.ID) != `"`+id+`"` {
			continue // an echo request, which such a short connection need not answer
		}
		if len(answer.Error) > 0 && string(answer.Error) != "null" {
			return nil, fmt.Errorf("%s refuses %s: %s", socket, method, text(answer.Error))
		}
		return answer.Result, nil
	}
}

// appctl runs a command of a daemon at its control socket, and returns the
// output.
func appctl(ctx context.Context, socket, command string, args ...string) (string, error) {
	params := make([]any, len(args))
	for i, a := range args {
		params[i] = a
	}
	result, err := call(ctx, socket, command, params...)
	return text(result), err
}

// text returns a JSON string's content, or any other value unchanged.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// schemaVersion returns the version in a schema, from a file or from a
// database server.
func schemaVersion(schema []byte) (string, error) {
	var s struct{ Version string }
	if err := json.Unmarshal(schema, &s); err != nil {
		return "", fmt.Errorf("decode database schema: %w", err)
	}
	return s.Version, nil
}

// installedVersion returns the version of the schema in a file.
func installedVersion(file string) (string, error) {
	schema, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return schemaVersion(schema)
}
