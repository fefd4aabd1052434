package machine

import (
	"io/fs"
	"net"
	"path"
	"sort"
	"strconv"
	"strings"
)

// NIC is a wired network card.
type NIC struct {
	Name      string
	MAC       string
	Driver    string
	Link      bool // connected to something
	SpeedMbit int  // 0: unknown
}

// ParseNICs returns the cards in sys, a file system like /sys.
func ParseNICs(sys fs.FS) ([]NIC, error) {
	entries, err := fs.ReadDir(sys, "class/net")
	if err != nil {
		return nil, err
	}
	var nics []NIC
	for _, e := range entries {
		dir := path.Join("class/net", e.Name())
		if line(sys, dir, "type") != "1" || !exists(sys, dir+"/device") || exists(sys, dir+"/phy80211") {
			continue // not Ethernet, virtual, or wireless
		}
		mac, err := net.ParseMAC(line(sys, dir, "address"))
		if err != nil || len(mac) != 6 {
			continue
		}
		n := NIC{Name: e.Name(), MAC: mac.String(), Link: line(sys, dir, "carrier") == "1"}
		if driver, err := fs.ReadLink(sys, dir+"/device/driver"); err == nil {
			n.Driver = path.Base(driver)
		}
		if mbit, err := strconv.Atoi(line(sys, dir, "speed")); err == nil && mbit > 0 {
			n.SpeedMbit = mbit
		}
		nics = append(nics, n)
	}
	// Connected cards first, since people look for those.
	sort.SliceStable(nics, func(i, j int) bool {
		if nics[i].Link != nics[j].Link {
			return nics[i].Link
		}
		return nics[i].Name < nics[j].Name
	})
	return nics, nil
}

// line returns the content of a file with one line, or "" if it cannot be read
// ("carrier" of a card that is down returns EINVAL).
func line(sys fs.FS, dir, name string) string {
	data, err := fs.ReadFile(sys, path.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func exists(sys fs.FS, name string) bool {
	_, err := fs.Stat(sys, name)
	return err == nil
}

// Speed formats the speed for people.
func (n NIC) Speed() string {
	switch {
	case !n.Link:
		return "no link"
	case n.SpeedMbit == 0:
		return "link up"
	case n.SpeedMbit%1000 == 0:
		return strconv.Itoa(n.SpeedMbit/1000) + " Gbit/s"
	}
	return strconv.Itoa(n.SpeedMbit) + " Mbit/s"
}
