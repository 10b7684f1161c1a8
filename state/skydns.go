package state

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// dnsPath is where the etcd plugin of CoreDNS looks unless it is told otherwise.
const dnsPath = "/skydns"

// dnsTTL is for how many seconds an answer may be kept: what is not ready any longer is soon forgotten.
const dnsTTL = 30

// dnsRecord is a record as the etcd plugin of CoreDNS reads it. Its key is the name from the last label to the first. With an address
// as host it is an A or AAAA record, with a port an SRV record too; below arpa, with a name as host, it is a PTR record.
type dnsRecord struct {
	Host string `json:"host"`
	Port int    `json:"port,omitempty"`
	TTL  int    `json:"ttl"`
}

// records are what stands for an instance in DNS, by key: NODE.NAME.service.ZONE, which NAME.service.ZONE finds as well, and its
// reverse. Only what is ready is there.
func (s *Service) records(name, node, zone string) map[string]dnsRecord {
	out := map[string]dnsRecord{}
	if zone == "" || s.Ready.IsZero() || s.Address == "" {
		return out
	}
	full := strings.ToLower(node + "." + name + ".service." + zone)
	out[dnsKey(full)] = dnsRecord{s.Address, s.Port, dnsTTL}
	if ip, err := netip.ParseAddr(s.Address); err == nil { // a name has no reverse
		out[reverseKey(ip)+"/"+strings.ToLower(name)] = dnsRecord{Host: full + ".", TTL: dnsTTL}
	}
	return out
}

// dnsKey is the key of a name.
func dnsKey(name string) string {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return dnsPath + "/" + strings.Join(labels, "/")
}

// reverseKey is the key of an address: that of the name under which reverse look-ups ask for it.
func reverseKey(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	var parts []string
	if ip.Is4() {
		for _, b := range ip.AsSlice() {
			parts = append(parts, strconv.Itoa(int(b)))
		}
		return dnsPath + "/arpa/in-addr/" + strings.Join(parts, "/")
	}
	const digits = "0123456789abcdef"
	for _, b := range ip.AsSlice() {
		parts = append(parts, digits[b>>4:b>>4+1], digits[b&15:b&15+1])
	}
	return dnsPath + "/arpa/ip6/" + strings.Join(parts, "/")
}

// leaveDNS deletes what stood for an instance and does not any longer.
func (s *Service) leaveDNS(now *Service) []clientv3.Op {
	if s == nil {
		return nil
	}
	var ops []clientv3.Op
	for _, key := range s.DNS {
		if now == nil || !slices.Contains(now.DNS, key) {
			ops = append(ops, clientv3.OpDelete(key))
		}
	}
	return ops
}
