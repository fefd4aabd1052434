package libvirt

import "testing"

func TestUnplugged(t *testing.T) {
	for _, c := range []struct {
		answer string
		ok     bool
	}{
		{`{"return":{},"id":"libvirt-9"}`, true},
		{`{"id":"libvirt-9","error":{"class":"DeviceNotFound","desc":"Device 'virtio-disk1' not found"}}`, true},
		{`{"id":"libvirt-9","error":{"class":"GenericError","desc":"Device virtio-disk1 is already in the process of unplug"}}`, true},
		{`{"id":"libvirt-9","error":{"class":"GenericError","desc":"Bus 'pci.3' does not support hotplugging"}}`, false},
		{`{"return"`, false},
	} {
		if err := unplugged(c.answer); (err == nil) != c.ok {
			t.Errorf("unplugged(%s) = %v, want success %v", c.answer, err, c.ok)
		}
	}
}
