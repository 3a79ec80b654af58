# cmake -DSOURCE_DIR=... -DOUTPUT=... -P embed.cmake
# Writes scripts.cc: every verb's Lua behind the parts that its second line names, with the digest by which Redis will
# know it.
set(out "// Made by embed.cmake from the .lua files.\n#include \"lock/scripts.h\"\n\nnamespace rlock::lock::scripts {\n")
foreach(verb acquire cancel force log recall release renew settle status)
  file(READ ${SOURCE_DIR}/${verb}.lua body)
  string(REGEX MATCH "\n-- WITH +([^\n]*)" ignored "${body}")
  string(REPLACE " " ";" parts "${CMAKE_MATCH_1}")
  set(source "")
  foreach(part ${parts})
    file(READ ${SOURCE_DIR}/${part}.lua text)
    string(APPEND source "${text}")
  endforeach()
  string(APPEND source "${body}")
  string(SHA1 digest "${source}")
  string(APPEND out "\nconst Script ${verb}{\"${verb}\", \"${digest}\", R\"lua(${source})lua\"};\n")
endforeach()
string(APPEND out "\n}  // namespace rlock::lock::scripts\n")
file(WRITE ${OUTPUT} "${out}")
