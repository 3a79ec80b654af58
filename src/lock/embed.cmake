# cmake -DSOURCE_DIR=... -DOUTPUT=... -P embed.cmake
# Writes scripts.cc: every verb's Lua behind common.lua, with the digest by which Redis will know it.
file(READ ${SOURCE_DIR}/common.lua common)
set(out "// Made by embed.cmake from the .lua files.\n#include \"lock/scripts.h\"\n\nnamespace rlock::lock::scripts {\n")
foreach(verb acquire cancel force release renew settle status)
  file(READ ${SOURCE_DIR}/${verb}.lua body)
  set(source "${common}${body}")
  string(SHA1 digest "${source}")
  string(APPEND out "\nconst Script ${verb}{\"${verb}\", \"${digest}\", R\"lua(${source})lua\"};\n")
endforeach()
string(APPEND out "\n}  // namespace rlock::lock::scripts\n")
file(WRITE ${OUTPUT} "${out}")
