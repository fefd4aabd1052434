package deploy

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// header is the content of the first record of a database's file (ovsdb(5)).
type header struct {
	Clustered bool   `json:"-"`
	Server    string `json:"server_id"`
	Address   string `json:"local_address"`
	Cluster   string `json:"cluster_id"` // empty: it has not joined yet
}

// readHeader reads the header. It returns the empty header for a file that is
// not a database, and for one that is not clustered; only ovsdb-tool and the
// server can check whether a file is complete.
func readHeader(file string) (h header, err error) {
	f, err := os.Open(file)
	if err != nil {
		return h, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	line, err := r.ReadSlice('\n') // a few dozen bytes; a first line longer than the buffer is invalid
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return h, err
	}
	var length int64
	if n, _ := fmt.Sscanf(string(line), "OVSDB CLUSTER %d ", &length); n != 1 {
		return h, nil
	}
	if err := json.NewDecoder(io.LimitReader(r, length)).Decode(&h); err != nil {
		return header{}, fmt.Errorf("first record of %s: %w", file, err)
	}
	h.Clustered = true
	return h, nil
}
