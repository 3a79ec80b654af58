// Scripts, in an interpreter that is set up as Redis does it: the base, table, string and math libraries, `redis`, and
// no global variables but KEYS and ARGV. This Lua was compiled as C++, so that its errors are exceptions.

#include <fmt/format.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/sha1.h"
#include "lock/scripts.h"
#include "redis.h"

namespace sim {
namespace {

using Kind = Value::Kind;

/// Lua's memory, which is never collected: now and then all of it is put back to how it was when the last script had
/// been compiled. Collecting, and freeing piece by piece, took a third of all time.
class Memory {
 public:
  static void* allocate(void* self, void* old, std::size_t old_size, std::size_t size) {
    return static_cast<Memory*>(self)->resize(static_cast<char*>(old), old_size, size);
  }

  void keep() { kept_.assign(bytes_.get(), bytes_.get() + used_); }

  void put_back() {
    std::copy(kept_.begin(), kept_.end(), bytes_.get());
    used_ = kept_.size();
  }

  bool is_crowded() const { return used_ > kept_.size() + crowded; }

 private:
  static constexpr std::size_t all = 64UL << 20U, crowded = 512UL << 10U;  // which a processor's cache still holds

  void* resize(char* old, std::size_t old_size, std::size_t size) {
    if (size <= old_size)
      return size > 0 ? old : nullptr;
    const std::size_t rounded = (size + 15) / 16 * 16;
    if (rounded > all - used_)
      return nullptr;
    char* fresh = bytes_.get() + used_;
    used_ += rounded;
    if (old != nullptr)
      std::memcpy(fresh, old, old_size);
    return fresh;
  }

  std::unique_ptr<char[]> bytes_{new char[all]};
  std::size_t used_ = 0;
  std::vector<char> kept_;
};

/// An interpreter for one script: the less it knows, the less there is to put back.
struct Interpreter {
  Memory memory;
  lua_State* state = lua_newstate(Memory::allocate, &memory);
  int script = 0;  // a reference of the function

  Interpreter();
};

std::map<std::pair<std::string, bool>, Interpreter>& interpreters() {
  static std::map<std::pair<std::string, bool>, Interpreter> of_scripts;  // by digest and is_hasty
  return of_scripts;
}

/// On whose behalf a script runs.
struct {
  Redis* redis = nullptr;
  Session* session = nullptr;
  std::set<int>* lines = nullptr;  // those that have run, if that is noted
} running;

void push_text(lua_State* lua, const std::string& text) { lua_pushlstring(lua, text.data(), text.size()); }

void push_table_with(lua_State* lua, const char* name, const std::string& text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, name);
}

void push(lua_State* lua, const Value& value) {
  luaL_checkstack(lua, 4, "too deep");
  switch (value.kind) {
    case Kind::nil:
      lua_pushboolean(lua, 0);
      break;
    case Kind::integer:
      lua_pushnumber(lua, static_cast<lua_Number>(value.integer));
      break;
    case Kind::text:
      push_text(lua, value.text);
      break;
    case Kind::status:
      push_table_with(lua, "ok", value.text);
      break;
    case Kind::error:
      push_table_with(lua, "err", value.text);
      break;
    case Kind::array:
      lua_createtable(lua, static_cast<int>(value.elements.size()), 0);
      for (std::size_t i = 0; i < value.elements.size(); ++i) {
        push(lua, value.elements[i]);
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
      }
      break;
  }
}

/// The text of a field of the table at the top of the stack; nothing if it is no text.
bool read_field(lua_State* lua, const char* name, std::string& text) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  const bool is_text = lua_type(lua, -1) == LUA_TSTRING;
  if (is_text)
    text = lua_tostring(lua, -1);
  lua_pop(lua, 1);
  return is_text;
}

/// Takes the top of the stack as a reply: a number loses its fraction, and an array ends at its first nil.
Value pop_reply(lua_State* lua) {
  Value value;
  switch (lua_type(lua, -1)) {
    case LUA_TNUMBER:
      value = Value::of(static_cast<long long>(lua_tonumber(lua, -1)));
      break;
    case LUA_TSTRING:
      value = Value::of(std::string(lua_tostring(lua, -1), lua_objlen(lua, -1)));
      break;
    case LUA_TBOOLEAN:
      value = lua_toboolean(lua, -1) != 0 ? Value::of(1LL) : Value{};
      break;
    case LUA_TTABLE: {
      std::string text;
      if (read_field(lua, "err", text)) {
        value = Value::error(text.starts_with('-') ? text.substr(1) : text);
      } else if (read_field(lua, "ok", text)) {
        value = Value::status(text);
      } else {
        luaL_checkstack(lua, 2, "too deep");
        value = Value::array();
        for (int i = 1;; ++i) {
          lua_rawgeti(lua, -1, i);
          if (lua_isnil(lua, -1))
            break;
          value.add(pop_reply(lua));
        }
        lua_pop(lua, 1);
      }
      break;
    }
    default:
      break;
  }
  lua_pop(lua, 1);
  return value;
}

/// An argument of redis.call(). A whole number is written without a point.
std::string argument(lua_State* lua, int i) {
  if (lua_type(lua, i) == LUA_TNUMBER) {
    const double number = lua_tonumber(lua, i);
    const bool whole = std::abs(number) < 9007199254740992.0 && std::trunc(number) == number;
    return whole ? std::to_string(static_cast<long long>(number)) : fmt::format("{:.17g}", number);
  }
  return {lua_tostring(lua, i), lua_objlen(lua, i)};
}

Value call(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0)
    return Value::error("ERR Please specify at least one argument for this redis.call() call");
  Words words;
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) != LUA_TNUMBER && lua_type(lua, i) != LUA_TSTRING)
      return Value::error("ERR Lua redis lib command arguments must be strings or integers");
    words.push_back(argument(lua, i));
  }
  return running.redis->call_from_script(*running.session, words);
}

int redis_pcall(lua_State* lua) {
  push(lua, call(lua));
  return 1;
}

int redis_call(lua_State* lua) {
  const Value value = call(lua);
  push(lua, value);
  return value.is_error() ? lua_error(lua) : 1;
}

int redis_sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1)
    return luaL_error(lua, "wrong number of arguments");
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  push_text(lua, rlock::sha1_hex({text, size}));
  return 1;
}

int redis_error_reply(lua_State* lua) {
  std::string text = luaL_checkstring(lua, 1);
  if (!text.starts_with('-'))
    text = (text.find(' ') == std::string::npos ? "-ERR " : "-") + text;
  push_table_with(lua, "err", text.substr(1));
  return 1;
}

int redis_status_reply(lua_State* lua) {
  push_table_with(lua, "ok", luaL_checkstring(lua, 1));
  return 1;
}

int redis_log(lua_State*) { return 0; }

int redis_yes(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

int no_such_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
}

int no_new_global(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

Interpreter::Interpreter() {
  lua_State* lua = state;
  lua_gc(lua, LUA_GCSTOP, 0);
  luaL_openlibs(lua);
  for (const char* name :
       {"dofile", "loadfile", "print", "require", "module", "package", "io", "os", "debug", "coroutine"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  static constexpr std::array<luaL_Reg, 9> functions{{{"call", redis_call},
                                                      {"pcall", redis_pcall},
                                                      {"sha1hex", redis_sha1hex},
                                                      {"error_reply", redis_error_reply},
                                                      {"status_reply", redis_status_reply},
                                                      {"log", redis_log},
                                                      {"replicate_commands", redis_yes},
                                                      {"setresp", redis_yes},
                                                      {nullptr, nullptr}}};
  luaL_register(lua, "redis", functions.data());
  lua_pop(lua, 1);
  lua_createtable(lua, 0, 2);
  lua_pushcfunction(lua, no_such_global);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, no_new_global);
  lua_setfield(lua, -2, "__newindex");
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_insert(lua, -2);
  lua_setmetatable(lua, -2);
  lua_pop(lua, 1);
}

std::optional<Lines> lines;

void note_line(lua_State* lua, lua_Debug* activation) {
  lua_getinfo(lua, "l", activation);
  running.lines->insert(activation->currentline);
}

/// Past the metatable.
void set_global(lua_State* lua, const char* name, const Words& words) {
  lua_pushstring(lua, name);
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    push_text(lua, words[i]);
    lua_rawseti(lua, -2, static_cast<int>(i) + 1);
  }
  lua_rawset(lua, LUA_GLOBALSINDEX);
}

/// Puts what follows a part's first line into a function of its own, for as many parts as Lua's limit of sixty
/// variables from outside allows. Calling it at the very end closes the variables before it, among which Lua otherwise
/// looks, one after the other, for those that each function uses: that took a quarter of all time. Nothing else is
/// different.
void nest_parts(std::string& source) {
  static constexpr std::string_view begin = "return (function() ", end = "\nend)()", part = "\n-- Part of ";
  const auto state = std::unique_ptr<lua_State, decltype(&lua_close)>{luaL_newstate(), lua_close};
  for (std::size_t at = source.find(part); at != std::string::npos; at = source.find(part, at + begin.size() + 1)) {
    std::string nested = source;
    nested.insert(at + 1, begin).append(end);
    if (luaL_loadbuffer(state.get(), nested.data(), nested.size(), "") == 0)
      source = std::move(nested);
    lua_settop(state.get(), 0);
  }
}

/// Takes the error at the top of the stack.
Value pop_error(lua_State* lua, const std::string& digest) {
  std::string text;
  if (lua_type(lua, -1) == LUA_TTABLE)
    read_field(lua, "err", text);
  else if (lua_isstring(lua, -1) != 0)
    text = std::string("ERR ") + lua_tostring(lua, -1);
  lua_pop(lua, 1);
  return Value::error(
      fmt::format("{} script: {}, on @user_script.", text.empty() ? "ERR unknown error" : text, digest));
}

/// Makes the limits small that a script keeps to in a crowd, which no world has. A script with a queue has all of them.
void make_hasty(std::string& source) {
  struct Limit {
    std::string_view definition;
    char value;
  };
  static constexpr std::array limits{Limit{"local MOST_SERVED = ", '4'},
                                     Limit{"local MOST_SEEN = ", '4'},
                                     Limit{"local MOST_DISMISSED = ", '4'},
                                     Limit{"local MOST_READ = ", '4'},
                                     Limit{"local BATCH = ", '4'},
                                     Limit{"local SMALL = ", '1'}};
  const bool has_queue = source.find("MOST_SERVED") != std::string::npos;
  for (const auto& [definition, value] : limits) {
    const std::size_t at = source.find(definition);
    rlock::always(at != std::string::npos || !has_queue, "a limit of the scripts has another name");
    if (at == std::string::npos)
      continue;
    const std::size_t number = at + definition.size();
    source.replace(number, source.find_first_not_of("0123456789", number) - number, 1, value);
  }
}

}  // namespace

void count_lines() { lines.emplace(); }

const Lines& lines_run() { return *lines; }

namespace {

/// A script or part of one, with the parts that it needs, as embed.cmake puts them together.
std::string link(const std::string& folder, const std::string& part, std::set<std::string>& present) {
  std::ifstream file{folder + "/" + part + ".lua"};
  rlock::always(file.is_open(), "there is no such part of a script");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("-- NEEDS ")) {
      text += line + "\n";
      continue;
    }
    std::istringstream words{line.substr(9)};
    for (std::string name; words >> name;) text += present.insert(name).second ? link(folder, name, present) : "";
  }
  return text;
}

std::map<std::string, std::string>& replacements() {
  static std::map<std::string, std::string> sources;  // by the digest of what they replace
  return sources;
}

}  // namespace

void replace_scripts(const std::string& folder) {
  for (const rlock::lock::Script* script : rlock::lock::scripts::all) {
    std::set<std::string> present;
    replacements()[std::string{script->sha1}] = link(folder, std::string{script->name}, present);
  }
}

const std::string& digest_of(const std::string& source) {
  static std::unordered_map<std::string, std::string> known;
  std::string& digest = known[source];
  if (digest.empty())
    digest = rlock::sha1_hex(source);
  return digest;
}

std::string compile_script(const std::string& digest, const std::string& source, bool is_hasty) {
  if (interpreters().contains({digest, is_hasty}))
    return {};
  const auto replacement = replacements().find(digest);
  std::string text = replacement != replacements().end() ? replacement->second : source;
  if (is_hasty)
    make_hasty(text);
  nest_parts(text);
  Interpreter& fresh = interpreters()[{digest, is_hasty}];
  if (luaL_loadbuffer(fresh.state, text.data(), text.size(), "@user_script") != 0) {
    const std::string why = lua_tostring(fresh.state, -1);
    interpreters().erase({digest, is_hasty});
    return "ERR Error compiling script (new function): " + why;
  }
  fresh.script = luaL_ref(fresh.state, LUA_REGISTRYINDEX);
  if (lines)
    lua_sethook(fresh.state, note_line, LUA_MASKLINE, 0);
  fresh.memory.keep();
  return {};
}

Value run_script(Redis& redis, Session& session, const std::string& digest, const Words& keys, const Words& arguments) {
  Interpreter& here = interpreters().at({digest, redis.is_hasty});
  lua_State* lua = here.state;
  if (here.memory.is_crowded())
    here.memory.put_back();
  running = {&redis, &session, lines ? &(*lines)[digest] : nullptr};
  set_global(lua, "KEYS", keys);
  set_global(lua, "ARGV", arguments);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, here.script);
  const bool failed = lua_pcall(lua, 0, 1, 0) != 0;
  return failed ? pop_error(lua, digest) : pop_reply(lua);
}

}  // namespace sim
