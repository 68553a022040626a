package shell

// ports are those that programs use when they are given a bare host.
var ports = map[string]int{
	"ssh": 22, "scp": 22, "sftp": 22, "rsync": 22, "ftp": 21, "telnet": 23, "psql": 5432, "mysql": 3306, "clickhouse-client": 9000,
	"redis-cli": 6379, "mongosh": 27017,
}

// DefaultPort is the port that a program uses when it is given a bare host; 443
// for those of which nothing else is known.
func DefaultPort(program string) int {
	if port, ok := ports[program]; ok {
		return port
	}
	return 443
}
