package imagefile

import "testing"

func TestPublicOnly(t *testing.T) {
	for address, ok := range map[string]bool{
		"93.184.216.34:80": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:80": false, "10.0.0.1:80": false, "192.168.1.1:80": false, "172.16.0.1:80": false, "169.254.169.254:80": false,
		"100.64.0.1:80": false, "0.0.0.0:80": false, "255.255.255.255:80": false, "224.0.0.1:80": false, "[::1]:80": false,
		"[fe80::1]:80": false, "[fd00::1]:80": false, "[::ffff:127.0.0.1]:80": false, "[::ffff:169.254.169.254]:80": false,
		"[64:ff9b::a9fe:a9fe]:80": false, "[2002:7f00:1::]:80": false, "name:80": false,
	} {
		if err := publicOnly(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
