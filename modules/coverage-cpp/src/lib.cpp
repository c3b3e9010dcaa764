// Tables, indexes, schedules, lifecycle, views and procedures. Each `check_…` fails with what was not as it should be.
#include <cstdio>

#include "lightcone/module.hpp"

using lightcone::error;
using lightcone::ok;
using lightcone::Outcome;
using lightcone::ReducerContext;

#define EXPECT(condition)                                            \
    do {                                                             \
        if (!(condition)) {                                          \
            return error(#condition " at " + std::to_string(__LINE__)); \
        }                                                            \
    } while (false)

struct Person {
    uint32_t id;
    std::string name;
    uint8_t age;
    lightcone::Identity owner;
};
LIGHTCONE_TYPE(Person, id, name, age, owner)
LIGHTCONE_TABLE(person, Person, Public, lightcone::primary_key(&Person::id), lightcone::auto_inc(&Person::id),
                lightcone::unique(&Person::name), lightcone::index(&Person::age, &Person::name),
                lightcone::hash_index(&Person::age));

struct Secret {
    std::string text;
    uint64_t added;
};
LIGHTCONE_TYPE(Secret, text, added)
LIGHTCONE_TABLE(secret, Secret, Private, lightcone::default_value(&Secret::added, 7));

struct Happening {
    std::string what;
};
LIGHTCONE_TYPE(Happening, what)
LIGHTCONE_TABLE(happening, Happening, Public, lightcone::event());

struct Timer {
    uint64_t id;
    lightcone::ScheduleAt at;
    std::string text;
};
LIGHTCONE_TYPE(Timer, id, at, text)
LIGHTCONE_TABLE(timer, Timer, Private, lightcone::primary_key(&Timer::id), lightcone::auto_inc(&Timer::id),
                lightcone::schedule(&Timer::at, "tick"));

LIGHTCONE_INIT(init, ReducerContext&) {
    lightcone::log_info("made");
    return ok();
}

LIGHTCONE_CLIENT_CONNECTED(connected, ReducerContext& ctx) {
    lightcone::log_info("connected " + ctx.sender.to_hex().substr(0, 4));
    return ok();
}

LIGHTCONE_CLIENT_DISCONNECTED(disconnected, ReducerContext&) {
    return ok();
}

LIGHTCONE_REDUCER(tick, ReducerContext& ctx, Timer row) {
    lightcone::log_info("tick " + row.text + (ctx.sender == lightcone::database_identity() ? " by itself" : ""));
    return ok();
}

LIGHTCONE_REDUCER(start_timer, ReducerContext& ctx, std::string text) {
    auto row = timer.insert({0, lightcone::Timestamp{ctx.timestamp.micros}, text});
    lightcone::log_info("timer " + std::to_string(row.id));
    return ok();
}

LIGHTCONE_REDUCER(add, ReducerContext& ctx, std::string name, uint8_t age) {
    auto row = person.try_insert({0, name, age, ctx.sender});
    if (!row) {
        return error(name + " is there already");
    }
    happening.insert({"added " + name});
    std::printf("printed %u\n", row->id);
    return ok();
}

LIGHTCONE_REDUCER(check_context, ReducerContext& ctx) {
    EXPECT(ctx.sender.to_hex() == "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20");
    EXPECT(ctx.connection_id.value == (lightcone::u128{0x0102030405060708} << 64 | 0x090a0b0c0d0e0f10));
    EXPECT(ctx.timestamp.micros == 1700000000000000);
    EXPECT(!ctx.jwt());
    return ok();
}

LIGHTCONE_REDUCER(check_tables, ReducerContext& ctx) {
    person.clear();
    auto ann = person.insert({0, "ann", 30, ctx.sender});
    auto bob = person.insert({0, "bob", 30, ctx.sender});
    auto eve = person.insert({0, "eve", 41, ctx.sender});
    EXPECT(bob.id == ann.id + 1 && eve.id == bob.id + 1);
    EXPECT(person.count() == 3 && person.rows().size() == 3);
    EXPECT(!person.try_insert({0, "bob", 1, ctx.sender}));
    EXPECT(person.by(&Person::id).find(bob.id)->name == "bob");
    EXPECT(!person.by(&Person::name).find("nobody"));
    bob.age = 31;
    person.update(&Person::id, bob);
    EXPECT(person.by(&Person::name).find("bob")->age == 31);
    EXPECT(person.erase(ann) && !person.erase(ann));
    EXPECT(person.by(&Person::name).erase("eve") == 1);
    EXPECT(person.count() == 1);
    EXPECT(person.clear() == 1 && person.rows().empty());
    return ok();
}

LIGHTCONE_REDUCER(check_indexes, ReducerContext& ctx) {
    person.clear();
    for (const char* name : {"ann", "bob", "eve"}) {
        for (uint8_t age : {10, 20, 30}) {
            person.insert({0, name + std::to_string(age), age, ctx.sender});
        }
    }
    auto by_age = person.by(&Person::age, &Person::name);
    using Ages = lightcone::Range<uint8_t>;
    using Names = lightcone::Range<std::string>;
    EXPECT(by_age.filter(20).size() == 3);
    EXPECT(by_age.filter(20, "bob20").size() == 1);
    EXPECT(by_age.filter(Ages::between(10, 30)).size() == 6);
    EXPECT(by_age.filter(Ages::at_least(20)).size() == 6);
    EXPECT(by_age.filter(Ages::below(20)).size() == 3);
    EXPECT(by_age.filter(20, Names::between("b", "f")).size() == 2);
    EXPECT(person.by(&Person::age).filter(30).size() == 3);
    EXPECT(by_age.erase(20, Names::at_least("bob20")) == 2);
    EXPECT(by_age.erase(30) == 3);
    EXPECT(person.count() == 4);
    person.clear();
    return ok();
}

LIGHTCONE_REDUCER(check_large_scan, ReducerContext&, uint32_t count) {
    secret.clear();
    for (uint32_t n = 0; n < count; n++) {
        secret.insert({std::string(n % 200000, 'x'), n});
    }
    uint64_t sum = 0;
    for (const auto& row : secret.rows()) {
        sum += row.added;
    }
    EXPECT(sum == uint64_t{count} * (count - 1) / 2);
    secret.clear();
    // One row that is larger than any buffer.
    secret.insert({std::string(300000, 'y'), 1});
    EXPECT(secret.rows().at(0).text.size() == 300000);
    secret.clear();
    return ok();
}

LIGHTCONE_REDUCER(fail, ReducerContext&, std::string why) {
    secret.insert({"never there", 1});
    return error(why);
}

LIGHTCONE_REDUCER(panic, ReducerContext&) {
    lightcone::panic("that is the end");
}

LIGHTCONE_REDUCER(break_unique, ReducerContext& ctx) {
    person.insert({0, "twice", 1, ctx.sender});
    person.insert({0, "twice", 2, ctx.sender});
    return ok();
}

LIGHTCONE_VIEW(std::vector<Person>, mine, lightcone::ViewContext& ctx) {
    std::vector<Person> rows;
    for (auto& row : person.rows()) {
        if (row.owner == ctx.sender) {
            rows.push_back(row);
        }
    }
    return rows;
}

LIGHTCONE_VIEW(std::optional<Person>, first, lightcone::AnonymousViewContext&) {
    auto rows = person.rows();
    return rows.empty() ? std::nullopt : std::optional(rows.front());
}

LIGHTCONE_PROCEDURE(uint64_t, count_and_add, lightcone::ProcedureContext& ctx, std::string text, bool keep) {
    uint64_t count = 0;
    ctx.with_transaction([&](ReducerContext&) {
        secret.insert({text, 1});
        count = secret.count();
        return keep;
    });
    return count;
}
