#include "lightcone/module.hpp"

struct Person {
    uint64_t id;
    std::string name;
};
LIGHTCONE_TYPE(Person, id, name)
LIGHTCONE_TABLE(person, Person, Public, lightcone::primary_key(&Person::id), lightcone::auto_inc(&Person::id));

// Runs once, when the database is made.
LIGHTCONE_INIT(init, lightcone::ReducerContext&) {
    return lightcone::ok();
}

LIGHTCONE_REDUCER(add, lightcone::ReducerContext&, std::string name) {
    if (name.empty()) {
        return lightcone::error("a person needs a name");
    }
    person.insert({0, name});
    return lightcone::ok();
}

LIGHTCONE_REDUCER(say_hello, lightcone::ReducerContext&) {
    for (const auto& row : person.rows()) {
        lightcone::log_info("Hello, " + row.name + "!");
    }
    lightcone::log_info("Hello, World!");
    return lightcone::ok();
}
