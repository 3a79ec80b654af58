#!/usr/bin/env bash
# A market of 20 items, after the one in "Redis in Action", chapter 6: sellers and buyers trade as fast as they can. What
# a trader saw must not have changed when it acts. Redis can detect a change (WATCH, and try again), or a lock prevents
# it: one for the market, or one for each item. Every trade is a process, with a lock or without; see trade.c.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

STOCK=1000000 # of each item: never sold out

trader() { # sell|buy WAY END(us)
  local item trust=locked
  while ((${EPOCHREALTIME/./} < $3)); do
    item=$((RANDOM % 20))
    case $2 in
      WATCH) UNDER=() trust=watch ;;
      'one lock') under rlock market ;;
      'a lock per item') under rlock "item$item" ;;
    esac
    "${UNDER[@]}" "$T/bin/trade" "$1" "$item" $trust "$REDIS_PORT" "$T/trades" "${EPOCHREALTIME/./}" 2>/dev/null
  done
}

open_market() {
  local item
  for item in {0..19}; do echo "$item $STOCK"; done | xargs "$REDIS_CLI" -s "$REDIS_SOCK" HSET market >/dev/null
  : >"$T/trades"
}

# Nothing was sold twice.
balance() {
  local wanted stock
  wanted=$(awk -v stock=$((20 * STOCK)) '{stock += $1 == "sell" ? 1 : -1} END {print stock}' "$T/trades")
  stock=$(cli HVALS market | awk '{sum += $1} END {print sum}')
  [[ $stock == "$wanted" ]] || fail "$stock items in the market, not $wanted"
}

# trade SELLERS BUYERS WAY: for two seconds; sets SOLD, BOUGHT (a second), RETRIES (per purchase) and WAIT (median, ms)
trade() {
  local number pids=() end sides=(sell buy)
  open_market
  end=$((${EPOCHREALTIME/./} + 2000000))
  for ((number = 0; number < $1 + $2; ++number)); do
    trader "${sides[number >= $1]}" "$3" $end &
    pids+=($!)
  done
  wait "${pids[@]}"
  balance
  SOLD=$(awk -v end=$end '$1 == "sell" && $2 < end {++n} END {print n / 2}' "$T/trades")
  BOUGHT=$(awk -v end=$end '$1 == "buy" && $2 < end {++n} END {print n / 2}' "$T/trades")
  RETRIES=$(awk '$1 == "buy" {++n; retries += $4} END {printf "%.1f", retries / n}' "$T/trades")
  WAIT=$(awk '$1 == "buy" {print $3 / 1000}' "$T/trades" | quantile 0.5)
}

build trade
start_redis
heading 'A market' 'sellers + buyers' way 'offered /s' 'bought /s' 'retries per purchase' 'median purchase, ms'
declare -A bought
for crowd in '1 1' '5 1' '5 5'; do
  for way in WATCH 'one lock' 'a lock per item'; do
    # shellcheck disable=SC2086 # two words
    trade $crowd "$way"
    bought[$way]=$BOUGHT # in the end, with the greatest crowd
    row "${crowd/ / + }" "$way" "$SOLD" "$BOUGHT" "$RETRIES" "$(calc %.1f "$WAIT")"
  done
done
cat <<'END'

With WATCH every offer makes all purchases start again, so sellers crowd out buyers. With locks both get their turns: the
buyer gets one sixth of them in 5 + 1, and the buyers get half in 5 + 5. Trades of different items do not wait for each
other.
END
target 'market of 5 + 5: purchases with a lock per item, against WATCH' \
  least 1 "$(calc %.1f "${bought['a lock per item']} / ${bought[WATCH]}")" x
