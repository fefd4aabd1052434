package deploy

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// header is what a database's file says of itself in its first record (ovsdb(5)).
type header struct {
	Clustered bool   `json:"-"`
	Server    string `json:"server_id"`
	Address   string `json:"local_address"`
	Cluster   string `json:"cluster_id"` // empty: it has not joined yet, and was not told
}

// readHeader reads it. A file that is no database has the empty one, as one that is
// not clustered does; whether a file is whole only ovsdb-tool and its server know.
func readHeader(file string) (h header, err error) {
	f, err := os.Open(file)
	if err != nil {
		return h, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	line, err := r.ReadSlice('\n') // of a few dozen bytes; more than the buffer is no first line
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
