package deploy

import (
	"os"
	"reflect"
	"testing"
	"time"
)

func TestParseStatus(t *testing.T) {
	text, err := os.ReadFile("testdata/status-leader.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseStatus(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &Status{
		Cluster: "88c4465a-7eb7-463e-b4e4-37593d2ff885", Server: "6cc7c5e2-d447-4b34-beb5-b38840f959e9",
		Address: "ssl:10.97.0.2:6643", State: "cluster member", Role: "leader", Leader: "self", Term: 3,
		Servers: []Server{
			{Short: "198d", Address: "ssl:10.97.0.1:6643", Heard: 106 * time.Millisecond, Match: 7},
			{Short: "b28b", Address: "ssl:10.97.0.1:6643", Heard: 6609 * time.Millisecond},
			{Short: "fdb4", Address: "ssl:[fd00::3]:6643", Heard: -1, Match: 7},
			{Short: "6cc7", Address: "ssl:10.97.0.2:6643", Self: true, Heard: -1, Match: 7},
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("ParseStatus = %+v, want %+v", s, want)
	}
	lone, err := ParseStatus("Server ID: 6cc7 (6cc7c5e2-d447-4b34-beb5-b38840f959e9)\nStatus: disconnected from the cluster (election timeout)\nRole: candidate\nLeader: unknown\n")
	if err != nil || !lone.member() || lone.settled() {
		t.Errorf("status of a candidate = %+v, %v, want a member that is not settled", lone, err)
	}
	for _, bad := range []string{"", "unknown cluster\n", "Status: cluster member\n", "Server ID: zz\nStatus: x\n"} {
		if s, err := ParseStatus(bad); err == nil {
			t.Errorf("ParseStatus(%q) = %+v, want an error", bad, s)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	if text, err := os.ReadFile("testdata/status-leader.txt"); err == nil {
		f.Add(string(text))
	}
	f.Add("Server ID: 6cc7 (6cc7c5e2-d447-4b34-beb5-b38840f959e9)\nStatus: joining cluster\nRemotes for joining: ssl:1.2.3.4:6643\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStatus(text)
		if err != nil {
			return
		}
		if s.Server == "" || len(s.Servers) > maxServers {
			t.Errorf("status = %+v, want a server ID and at most %d servers", s, maxServers)
		}
		for _, server := range s.Servers {
			if server.Short == "" || server.Address == "" || server.Heard < -1 {
				t.Errorf("server = %+v, want an ID, an address and Heard >= -1", server)
			}
		}
	})
}

func FuzzParseConfigured(f *testing.F) {
	f.Add([]byte(`[{"rows":[{"external_ids":["map",[["system-id","n1"]]]}]},{"rows":[{"name":"br-int","datapath_type":"netdev","fail_mode":"secure","ports":["set",[["uuid","p1"]]]}]},{"rows":[{"_uuid":["uuid","p1"],"name":"br-int","interfaces":["uuid","i1"]}]},{"rows":[{"_uuid":["uuid","i1"],"error":"could not open"}]}]`))
	f.Add([]byte(`[{},{},{},{"error":"x"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := parseConfigured(text); err == nil && (c == nil || c.ExternalIDs == nil || c.Bridges == nil) {
			t.Errorf("parseConfigured = %+v without an error, want a configuration", c)
		}
	})
}

func TestParseConfigured(t *testing.T) {
	c, err := parseConfigured([]byte(`[{"rows":[{"external_ids":["map",[["system-id","n1"],["a","b"]]]}]},
		{"rows":[{"name":"br-int","datapath_type":"netdev","fail_mode":"secure","ports":["set",[["uuid","p1"],["uuid","p2"]]]},
		         {"name":"bx","datapath_type":"","fail_mode":["set",[]],"ports":["uuid","p3"]}]},
		{"rows":[{"_uuid":["uuid","p1"],"name":"br-int","interfaces":["uuid","i1"]},{"_uuid":["uuid","p2"],"name":"tap","interfaces":["uuid","i2"]},{"_uuid":["uuid","p3"],"name":"eth1","interfaces":["uuid","i3"]}]},
		{"rows":[{"_uuid":["uuid","i1"],"error":"could not open"},{"_uuid":["uuid","i2"],"error":"gone"},{"_uuid":["uuid","i3"],"error":["set",[]]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Configured{ExternalIDs: map[string]string{"system-id": "n1", "a": "b"}, Bridges: map[string]Bridge{
		"br-int": {Datapath: "netdev", Secure: true, Ports: []string{"br-int", "tap"}, Error: "could not open"},
		"bx":     {Ports: []string{"eth1"}},
	}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("parseConfigured = %+v, want %+v", c, want)
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"7.0.0", "6.3.1", true}, {"6.10.0", "6.9.9", true}, {"7.0.0", "7.0.0", false}, {"6.0.0", "7.0.0", false}, {"7", "6.0.0", false}, {"x.y.z", "1.0.0", false}} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("newer(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
