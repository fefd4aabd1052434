package deploy

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadHeader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nb-1.db")
	const record = `{"prev_data":[{},{"a":["map",[]]}],"server_id":"s","local_address":"ssl:10.0.0.1:6643","cluster_id":"c"}`
	for _, c := range []struct {
		content string
		want    header
		fails   bool
	}{
		{"OVSDB CLUSTER 104 da39a3ee5e6b4b0d\n" + record + "\nOVSDB CLUSTER 2 da39\n{}\n",
			header{Clustered: true, Server: "s", Address: "ssl:10.0.0.1:6643", Cluster: "c"}, false},
		{"OVSDB CLUSTER 104 da39a3ee5e6b4b0d\n" + record[:50], header{}, true},
		{"OVSDB CLUSTER 50 da39a3ee5e6b4b0d\n" + record, header{}, true},
		{"OVSDB JSON 2 da39a3ee5e6b4b0d\n{}\n", header{}, false},
		{"garbage", header{}, false},
		{string(make([]byte, 1<<16)), header{}, false},
		{"", header{}, false},
	} {
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if h, err := readHeader(file); h != c.want || (err != nil) != c.fails {
			t.Errorf("header of %.60q = %+v, %v; want %+v, an error: %v", c.content, h, err, c.want, c.fails)
		}
	}
	if _, err := readHeader(file + ".none"); !os.IsNotExist(err) {
		t.Errorf("readHeader of a missing file = %v, want not exist", err)
	}
}
