#include "base/masking.h"

#include <string>
#include <vector>

#include "expect.h"

namespace rlock::unit {
namespace {

void shows(const std::vector<std::string>& arguments, std::string_view shown) {
  expect_same(mask_arguments(arguments), shown, "passwords in arguments are masked");
}

void test_options() {
  shows({"app", "--password=X y", "--go"}, "app --password=*** --go");
  shows({"app", "--password", "X", "--go"}, "app --password *** --go");
  shows({"app", "--db-passwd", "X y"}, "app --db-passwd ***");
  shows({"app", "-password", "X"}, "app -password ***");
  shows({"app", "--auth-token=X"}, "app --auth-token=***");
  shows({"app", "--client-secret", "X"}, "app --client-secret ***");
  shows({"app", "--API-KEY=X"}, "app --API-KEY=***");
  shows({"app", "--PASSPHRASE", "X"}, "app --PASSPHRASE ***");
  shows({"env", "PGPASSWORD=X", "MYSQL_PWD=X", "GH_TOKEN=X y", "AWS_SECRET_ACCESS_KEY=X", "pg_dump"},
        "env PGPASSWORD=*** MYSQL_PWD=*** GH_TOKEN=*** AWS_SECRET_ACCESS_KEY=*** pg_dump");
  shows({"openssl", "enc", "-passin", "pass:X"}, "openssl enc -passin ***");
  shows({"curl", "-u", "bob:X", "--user", "bob:X"}, "curl -u bob:*** --user bob:***");
}

void test_programs() {
  shows({"mysqldump", "-u", "root", "-pX", "db"}, "mysqldump -u root -p*** db");
  shows({"/usr/bin/mysql", "-p", "db"}, "/usr/bin/mysql -p db");
  shows({"mariadb-backup", "-pX"}, "mariadb-backup -p***");
  shows({"sshpass", "-p", "X", "ssh", "host"}, "sshpass -p *** ssh host");
  shows({"sshpass", "-pX", "ssh", "host"}, "sshpass -p*** ssh host");
  shows({"redis-cli", "-a", "X", "PING"}, "redis-cli -a *** PING");
}

void test_urls() {
  shows({"psql", "postgres://bob:X@db/x"}, "psql postgres://bob:***@db/x");
  shows({"psql", "postgres://bob:X/?@Y@db/x?sslmode=no"}, "psql postgres://bob:***@db/x?sslmode=no");
  shows({"curl", "http://h/?token=X&a=b"}, "curl http://h/?token=***&a=b");
  shows({"cp", "bob:X@host"}, "cp bob:***@host");
}

void test_scripts() {
  shows({"sh", "-c", "PASSWORD=X backup.sh"}, "sh -c PASSWORD=*** backup.sh");
  shows({"bash", "-lc", "mysql -pX db; pg_dump --password 'X y' db"},
        "bash -lc mysql -p*** db; pg_dump --password *** db");
  shows({"bash", "-c", "PASS='X y' run && curl http://bob:X@h"}, "bash -c PASS=*** run && curl http://bob:***@h");
  shows({"ssh", "host", "pg_dump --password X db"}, "ssh host pg_dump --password *** db");
  shows({"ssh", "host", "PGPASSWORD=X pg_dump"}, "ssh host PGPASSWORD=***");
}

void test_innocent() {
  shows({"rlock", "run", "--key", "a", "--password-file", "/etc/pw", "--", "x"},
        "rlock run --key a --password-file /etc/pw -- x");
  shows({"rsync", "-a", "-u", "git@host:dir", "a:b"}, "rsync -a -u git@host:dir a:b");
  shows({"mkdir", "-p", "a"}, "mkdir -p a");
  shows({"mkdir", "-pv", "a"}, "mkdir -pv a");
  shows({"docker", "run", "-u", "1000:1000", "reg.io/app:1.2@sha256:00"},
        "docker run -u 1000:1000 reg.io/app:1.2@sha256:00");
  shows({"docker", "run", "app:1@sha256:00"}, "docker run app:1@sha256:00");
  shows({"git", "clone", "git@host:me/it"}, "git clone git@host:me/it");
  shows({"ftp", "--no-password", "host"}, "ftp --no-password host");
  shows({"app", "--password", "--go"}, "app --password --go");
  shows({"sh", "-c", "echo  'two  words' | cat; PWD=/x"}, "sh -c echo  'two  words' | cat; PWD=/x");
  shows({}, "");
  shows({"", ""}, " ");
}

}  // namespace

void test_masking() {
  test_options();
  test_programs();
  test_urls();
  test_scripts();
  test_innocent();
}

}  // namespace rlock::unit
